"""Commands: arguments in, one call, lines out; the top of the house."""
