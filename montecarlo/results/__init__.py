"""Results on disk: the table of measurements, the output folder, reading them back."""
