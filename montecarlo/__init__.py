"""Judges what texts claim about dividing attention scores by sqrt(d_k).

The folders read as a pipeline: ``attention`` (arrays in, arrays out), ``sampling`` (the
only one that draws), ``theory`` (exact values), ``estimation``, ``results``,
``claims``, ``study``, and ``report`` (pages and figures).

One number in three lines:

>>> from montecarlo.point import measure
>>> point = measure("gaussian", "gaussian", 4, 8, quantity="entropy", most=128)
>>> point.quantity, point.n_replicates
('entropy', 128)
"""
