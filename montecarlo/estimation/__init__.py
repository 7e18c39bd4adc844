"""Estimates with confidence intervals from replicates, and the sequential engine.

Replicates, each with fresh matrices Q and K, are independent; the attention rows of one
replicate, which share its keys, are not.
"""
