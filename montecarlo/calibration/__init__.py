"""The judge judged: how often its intervals miss, by law, d_k and quantity."""
