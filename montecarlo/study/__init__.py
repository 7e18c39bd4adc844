"""What to sample, on which workers, and where results go; `measure` and `grid`."""
