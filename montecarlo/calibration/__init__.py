"""The judge judged: how often its intervals miss, by distribution, d_k and quantity."""
