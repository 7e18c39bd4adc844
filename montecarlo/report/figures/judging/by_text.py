"""Which text claims what: rows for the figure of verdicts by text."""

from dataclasses import replace

import pandas as pd

from montecarlo.report.content.findings import Results
from montecarlo.report.figures.judging.texts import CURVE


def with_verdicts(results: Results) -> Results:
    """Put a row for each text and claim behind the curves, where there are texts.

    Parameters
    ----------
    results : Results

    Returns
    -------
    Results
        With the column ``text``; ``outcome`` is the verdict on what it says, ``x`` the
        number of the claim.  Texts come in alphabetical order of their keys.
    """
    rows = {
        (source.text, float(number), str(claim.texts[source.text]))
        for number, claim in enumerate(results.claims.claims, start=1)
        for source in claim.sources
    }
    if not rows:
        return results
    added = pd.DataFrame(
        [
            {"curve": CURVE, "text": text, "outcome": verdict, "x": x}
            for text, x, verdict in sorted(rows)
        ]
    )
    return replace(
        results, curves=pd.concat([results.curves, added], ignore_index=True)
    )
