"""Drawing Q and K: distributions of the entries, dependence, points, replicates.

The only folder that draws random numbers.
"""
