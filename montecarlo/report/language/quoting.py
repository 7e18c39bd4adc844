"""One answer of `measure` as a paragraph to quote, in Markdown."""

import math
import re
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from pathlib import Path

from montecarlo.attention.quantities import QUANTITIES, quantile_level
from montecarlo.report.language.catalogues import Language, localise
from montecarlo.report.language.symbols import divisor_symbol
from montecarlo.study.measured import Measurement

_PACKAGE = Path(__file__).parents[2]
#: What stands between the parts of a setting, and between sentences.
BETWEEN, AFTER = {"zh": "；", "ja": "、"}, {"zh": "", "ja": ""}

#: Messages: a label stands before a colon, so that no grammar depends on it.
LABEL = "%(quantity)s (%(summary)s)"
SUMMARIES = {
    "mean": "mean over rows",
    "median": "median over rows",
    "spread": "ratio of the highest to the lowest decile of the rows",
    "share_above": "share of rows above the mean under the second divisor",
    "first": "mean of the first row or key",
    "last": "mean of the last row or key",
}
QUANTILE = "%(level)s %% quantile over rows"
ESTIMATE = (
    "%(label)s: the Monte Carlo estimate is %(value)s, with a %(level)s confidence "
    "interval from %(low)s to %(high)s."
)
NONE = (
    "%(label)s: the Monte Carlo estimate is $0$, with %(level)s confidence at most "
    "%(high)s."
)
ALL = (
    "%(label)s: the Monte Carlo estimate is $1$, with %(level)s confidence at least "
    "%(low)s."
)
BARE = (
    "%(label)s: the Monte Carlo estimate is %(value)s; no %(level)s confidence "
    "interval can be given."
)
UNKNOWN = "%(label)s: the sample does not determine an estimate."
EXACT = "The exact theoretical value is %(exact)s."
SETTING = "Setting: %(parts)s."
ENTRIES = "distribution of the entries of Q and K: `%(name)s`"
ENTRIES_APART = "distribution of the entries of Q: `%(q)s`, of K: `%(k)s`"
KEYS = "$n = %(n)s$ keys per row"
UNSCALED = "unscaled scores"
DIVISOR = "divisor of the scores: $%(divisor)s$"
RATIO = "ratio of the value with the divisor $%(over)s$ to that with $%(under)s$"
DEPENDENCE = "dependence of K on Q: `%(name)s`"
INITIALISATION = "initialisation: `%(name)s`"
NORMALISATION = "normalisation of queries and keys: `%(name)s`"
MASK = "mask: `%(name)s`"
FORMAT = "number format of the weights: `%(name)s`, softmax: `%(softmax)s`"
REPLICATES = "independent replicates: %(count)s, each of %(queries)s queries"
AGAIN = "Reproduce it with: `%(command)s`."
SOURCE = "Source: %(authors)s, “%(title)s”, version %(version)s, %(year)s."
MESSAGES = (
    *(LABEL, *SUMMARIES.values(), QUANTILE, ESTIMATE, NONE, ALL, BARE, UNKNOWN, EXACT),
    *(SETTING, KEYS, ENTRIES, ENTRIES_APART, UNSCALED, DIVISOR, RATIO, DEPENDENCE),
    *(INITIALISATION, NORMALISATION, MASK, FORMAT, REPLICATES, AGAIN, SOURCE),
)


def quote(found: Measurement, language: Language, command: str) -> str:
    """Return a paragraph: estimate, exact value, setting, command and source.

    Parameters
    ----------
    found : Measurement
    language : Language
    command : str
        What gives the same digits again; empty if nothing does.
    """
    sentences = [_estimate(found, language)]
    if found.reference is not None:
        digits = min(found.digits / 100.0, abs(found.reference) / 1e3)
        error = max(digits, found.reference_error or 0.0)
        exact = language.numbers.plain(found.reference, error)
        sentences.append(_say(language, EXACT, exact=exact))
    parts = BETWEEN.get(language.code, "; ").join(_setting(found, language))
    sentences.append(_say(language, SETTING, parts=parts))
    if command:
        sentences.append(_say(language, AGAIN, command=command))
    sentences.append(_say(language, SOURCE, **read_citation()))
    return AFTER.get(language.code, " ").join(sentences)


def read_citation() -> dict[str, str]:
    """Return authors, title, version and year, as CITATION.cff has them."""
    paths = [place / "CITATION.cff" for place in (_PACKAGE, _PACKAGE.parent)]
    text = next(one for one in paths if one.exists()).read_text(encoding="utf-8")
    fields = dict(re.findall(r'^([\w-]+): "?(.*?)"?$', text, re.MULTILINE))
    authors = re.findall(r"^ +- name: (.*)$", text, re.MULTILINE)
    return {
        "authors": ", ".join(authors),
        "title": fields["title"].replace("sqrt(d_k)", "$\\sqrt{d_k}$"),
        "version": fields["version"],
        "year": fields["date-released"][:4],
    }


def _say(language: Language, message: str, **values: str) -> str:
    level = f"95{language.numbers.before_percent}%"
    return language.translate(message) % {"level": level, **values}


def _estimate(found: Measurement, language: Language) -> str:
    def number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
        return language.numbers.plain(value, found.digits, rounding)

    label = _label(found, language)
    low, high = found.ci_low, found.ci_high
    if math.isnan(found.estimate):
        return _say(language, UNKNOWN, label=label)
    if not (math.isfinite(low) and math.isfinite(high)):
        return _say(language, BARE, label=label, value=number(found.estimate))
    ends = {
        "label": label,
        "low": number(low, ROUND_FLOOR),
        "high": number(high, ROUND_CEILING),
    }
    if found.is_all_or_none:
        return _say(language, ALL if found.estimate else NONE, **ends)
    return _say(language, ESTIMATE, value=number(found.estimate), **ends)


def _label(found: Measurement, language: Language) -> str:
    words = localise(language, language.translate(QUANTITIES[found.quantity].words))
    words = re.split("[:：]", words)[0]  # what explains it would be a second colon
    words = words[:1].upper() + words[1:]
    level = quantile_level(found.summary)
    if found.summary == "mean" and QUANTITIES[found.quantity].indicator:
        return words  # a share of rows
    if found.summary in SUMMARIES:
        summary = _say(language, SUMMARIES[found.summary])
    elif level is not None:
        summary = _say(language, QUANTILE, level=language.numbers.plain(100.0 * level))
    else:
        return words
    return _say(language, LABEL, quantity=words, summary=summary)


def _setting(found: Measurement, language: Language) -> Iterator[str]:
    yield f"$d_k = {found.d_k}$"
    if found.n_keys is not None:
        yield _say(language, KEYS, n=str(found.n_keys))
    q, k = found.distribution_q, found.distribution_k
    if q == k:
        yield _say(language, ENTRIES, name=q)
    else:
        yield _say(language, ENTRIES_APART, q=q, k=k)
    symbols = [
        localise(language, divisor_symbol(one)) for one in found.divisor.split("/")
    ]
    if len(symbols) == 2:
        yield _say(language, RATIO, over=symbols[0], under=symbols[1])
    elif found.divisor == "none":
        yield _say(language, UNSCALED)
    elif QUANTITIES[found.quantity].divided:
        yield _say(language, DIVISOR, divisor=symbols[0])
    for message, name in (
        (DEPENDENCE, found.dependence),
        (INITIALISATION, found.initialisation),
        (NORMALISATION, found.normalisation),
        (MASK, found.mask),
    ):
        if name not in {"", "none"}:
            yield _say(language, message, name=name)
    if found.number_format != "float64":
        yield _say(language, FORMAT, name=found.number_format, softmax=found.softmax)
    sizes = {"count": found.n_replicates, "queries": found.n_queries}
    told = {name: language.numbers.text(size, 0) for name, size in sizes.items()}
    yield _say(language, REPLICATES, **told)
