"""What the texts claim, as data, and how each claim is judged."""
