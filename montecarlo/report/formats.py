"""What a report can be written as; its files are made by `montecarlo.report.making`."""

#: What is written where nothing else is asked for, and the other.
DEFAULT, MARKDOWN = "html", "markdown"
FORMATS = (DEFAULT, MARKDOWN)
