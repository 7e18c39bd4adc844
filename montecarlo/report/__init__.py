"""From results on disk to pages and figures; nothing here samples or judges."""
