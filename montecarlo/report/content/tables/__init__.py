"""Tables of a page: a few rows of the results, picked and never changed."""
