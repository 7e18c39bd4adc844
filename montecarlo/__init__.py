"""Judges what texts claim about dividing attention scores by sqrt(d_k).

The folders read as a pipeline: ``attention`` (arrays in, arrays out), ``sampling`` (the
only one that draws), ``theory`` (exact values), ``estimation``, ``results``,
``claims``, ``study``, and ``report`` (pages and figures).
"""
