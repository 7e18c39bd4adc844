"""Results of long runs that ship with the package: data files, and a reader of each.

The programs that make them are in ``studies/``, which is not installed.
"""
