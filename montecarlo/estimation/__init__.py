"""From replicates to estimates with standard errors, and the engine that gets them.

The replicate, a fresh Q and K, is the unit of independence throughout.
"""
