"""Drawing Q and K: laws of the entries, dependence, conditions, replicates.

The only folder that draws random numbers.
"""
