"""Sampling as evidence: presets, a study, a point, a grid, claims of one's own."""
