"""Attention itself: divisors, softmax, gradients, quantities; arrays in, arrays out.

Nothing here is random.  The last axis of an array of scores is the keys of a row,
the axis before it the queries; any axes before those are replicates.
"""
