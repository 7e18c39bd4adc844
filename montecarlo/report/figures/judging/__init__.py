"""Figures of the judging itself: verdicts by text, thresholds, z-scores, the card."""
