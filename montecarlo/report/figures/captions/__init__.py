"""What stands beside a figure: facts for alternative texts, names for legends."""
