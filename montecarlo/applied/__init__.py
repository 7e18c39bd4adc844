"""The scale that a model applies to its scores: seen in what softmax made of them.

Queries and keys with attention weights, or with values and outputs, in; per head what
scores are multiplied by, and what else was added to them, out.  Nothing is drawn.
"""
