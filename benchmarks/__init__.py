"""What is measured once and held in tables: coverage of intervals, speed, growth."""
