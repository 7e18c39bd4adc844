"""Judges what texts claim about dividing attention scores by sqrt(d_k).

Commands, each with ``--help``:

python -m montecarlo.report     sample, judge the claims of five texts, write pages
python -m montecarlo.figures    the figures for documents, with captions
python -m montecarlo.measure    one number, with its interval and exact value
python -m montecarlo.judge      claims of your own, also in CI
python -m montecarlo.observe    queries and keys of your own model
python -m montecarlo.calibrate  how often the judge errs

One number in three lines:

>>> from montecarlo.measurement import measure
>>> point = measure("gaussian", "gaussian", 4, 8, quantity="entropy", most=128)
>>> point.quantity, point.n_replicates
('entropy', 128)

`montecarlo.observation.observe` takes queries and keys in hand, and returns a frame.

The folders read as a pipeline: ``attention`` (arrays in, arrays out), ``sampling`` (the
only one that draws), ``theory`` (exact values), ``estimation``, ``results``,
``claims``, ``study``, and ``report`` (pages and figures).
"""
