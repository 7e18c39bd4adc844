"""Languages: message catalogues, number formats, formulas and symbols."""
