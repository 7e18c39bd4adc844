"""Sampling of Q and K: distributions, design points, random streams and replicates.

No other package of montecarlo draws random numbers.
"""
