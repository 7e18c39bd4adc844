"""What is measured now and then: coverage, speed, growth, which errors are seen."""
