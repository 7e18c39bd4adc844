"""Words and numbers: catalogues, number formats, formulas, symbols; of any result."""
