"""The section on training: its numbers are the record's, and no cell is left empty."""

from dataclasses import replace


def numbers(page, element):
    """Raw values of the numbers of an element, in order."""
    return [number.value for number in page.numbers(element)]


def there(*values):
    """The values that are numbers."""
    return [value for value in values if value is not None]


def test_table_is_the_record(evidence, report):
    """Every line shows d_k, rate, steps, share and loss of the record."""
    training = report.results.training
    lines = evidence.by_id["table-training"].findall("tbody/tr")
    for line, wanted in zip(lines, training.lines, strict=True):
        median, low, high = wanted.steps
        ends = [] if low is None else there(low, high)
        middle = training.configuration["steps"] if median is None else median
        assert numbers(evidence, line) == [
            *(wanted.d_k, wanted.rate),
            *(middle, *ends),
            *(round(wanted.share[0] * wanted.seeds), wanted.seeds),
            *wanted.share[1:],
            *there(wanted.final_loss),
        ]


def test_lower_bounds_are_marked(evidence, report):
    """What is no more than a bound has a sign, and no other number of a case."""
    bounds = {
        case["estimate"]
        for claim in report.claims["claims"]
        for interpretation in claim["interpretations"]
        for check in interpretation["checks"]
        for case in check["cases"]
        if case["part"] and case["estimate"] is not None and case["std_error"] is None
        if case["simultaneous_low"] is not None and case["simultaneous_high"] is None
    }
    tables = [e for e in evidence.root.iter("table") if e.get("class") == "cases"]
    cells = [cell for table in tables for cell in table.iter("td")]
    marked = [cell for cell in cells if "≥" in "".join(cell.itertext())]
    assert bounds
    assert {numbers(evidence, cell)[0] for cell in marked} == bounds


def test_a_median_beyond_the_budget_is_a_bound(report):
    """Where half of the seeds never learn, the last step stands with its sign."""
    first, *others = report.results.training.lines
    never = (replace(first, steps=(None, None, None)), *others)
    training = replace(report.results.training, lines=never)
    findings = replace(report.results, training=training)
    contents = replace(report.contents, findings=findings)
    page = report.render(contents, "en", evidence=True)
    (line, *_) = page.by_id["table-training"].findall("tbody/tr")
    assert "≥" in "".join(line.itertext())
    assert training.configuration["steps"] in numbers(page, line)
