"""The command that reports on a model observed, and what it says on the terminal."""
