"""Names of the formats of a report; `montecarlo.report.making` writes them."""

#: The default format, and the other one.
DEFAULT, MARKDOWN = "html", "markdown"
FORMATS = (DEFAULT, MARKDOWN)
