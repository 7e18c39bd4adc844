"""Attention: masks, divisors, softmax, gradients and the quantities that are measured.

Functions take and return arrays, and nothing is random.  In an array of scores the last
axis is the keys, the one before it the queries, and any others are replicates.
"""
