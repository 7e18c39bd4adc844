"""What papers say of attention scaling: statements, models of scores, verdicts."""
