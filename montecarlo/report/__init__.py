"""Pages and figures from the results of a study; nothing is sampled or judged here."""
