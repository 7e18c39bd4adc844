"""Training as evidence: tiny models, and the record of what became of them."""
