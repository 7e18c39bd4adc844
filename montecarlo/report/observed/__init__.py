"""The report of a model observed: record, views, figures, pages, terminal."""
