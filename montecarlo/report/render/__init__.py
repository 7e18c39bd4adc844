"""From records and figures to pages, Markdown and errata."""
