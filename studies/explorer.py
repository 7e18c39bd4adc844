"""What the explorer of the report page computes with: report_templates/explorer.json.

Run ``python -m studies.explorer`` where the theory was changed; a test makes a part of
it again.  For each number of keys n there are functions of the standard deviation s of
a row's scores, from 0 to `TOP`, as Chebyshev polynomials in asinh s: linear in s for
near 0, in ln s further on, so that no limit stands apart.  Given the length of the
query the scores are independent normals, s = |q|/c; the page averages over |q|.
"""

import json
import math
from collections.abc import Sequence

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from montecarlo.theory import expected_row, largest_weight_share
from montecarlo.theory.query_gradients import expect_along_query
from montecarlo.theory.row_expectations import interpolate
from studies.program import ROOT, parse, run_program

TABLE = ROOT / "report_templates" / "explorer.json"
KEYS = tuple(2**i for i in range(3, 15))
#: A query of 1024 entries is longer than this with a probability of 1e-26.
TOP = 40.0
#: Chebyshev points: 8 more of them change no function by more than 3e-6.
POINTS = 48
#: Coefficients are whole multiples of this.
UNIT = 1e-6
SATURATED = 0.9


def row_functions(n_keys: int, std: float) -> tuple[float, ...]:
    """Return what the table has of a row, in its order.

    Returns
    -------
    tuple of float
        ln E p_max, E H, P(p_max >= 0.9), ln E ‖J‖_F² and ln E ‖J z‖², z the scores in
        standard deviations.
    """
    row = expected_row(n_keys, std=std)
    return (
        math.log(row["weight_max"].value),
        row["entropy"].value,
        largest_weight_share(SATURATED, n_keys, std=std).value,
        math.log(row["jacobian_frobenius_squared"].value),
        math.log(expect_along_query(std, n_keys).value),
    )


def coefficients(n_keys: int) -> NDArray[np.int64]:
    """Return the coefficients for a number of keys, shape (5, POINTS), in `UNIT`."""
    x = chebyshev.chebpts1(POINTS)
    stds = np.sinh(0.5 * (x + 1.0) * math.asinh(TOP))
    values = np.array([row_functions(n_keys, float(std)) for std in stds])
    found: NDArray[np.int64] = np.rint(interpolate(values) / UNIT).astype(np.int64).T
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Write the table."""
    options = parse("explorer", __doc__, argv, output=TABLE)
    table = {
        "top": TOP,
        "unit": UNIT,
        "keys": KEYS,
        "functions": [coefficients(n_keys).tolist() for n_keys in KEYS],
    }
    text = json.dumps(table, separators=(",", ":"))
    options.output.write_text(f"{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("explorer", main))
