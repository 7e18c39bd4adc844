"""What is shown of a model observed, and of one that was trained."""
