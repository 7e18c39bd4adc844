"""Figures of a model observed: its heads, and the scale that it applies."""
