"""One answer of `measure` as a paragraph to quote, in Markdown."""

import math
import re
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from pathlib import Path

from montecarlo.attention.quantities import (
    QUANTITIES,
    SATURATED,
    Quantity,
    quantile_level,
)
from montecarlo.report.language.catalogues import Language, localise
from montecarlo.report.language.symbols import divisor_symbol
from montecarlo.study.measured import Measurement

_PACKAGE = Path(__file__).parents[2]
#: What stands between the parts of a setting, and between sentences.
BETWEEN, AFTER = {"zh": "；", "ja": "、"}, {"zh": "", "ja": ""}


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
        sentences.append(
            _say(language, "The exact theoretical value is %(exact)s.", exact=exact)
        )
    parts = BETWEEN.get(language.code, "; ").join(_setting(found, language))
    sentences.append(_say(language, "Setting: %(parts)s.", parts=parts))
    if command:
        again = _say(language, "Reproduce it with: `%(command)s`.", command=command)
        sentences.append(again)
    source = _say(
        language,
        "Source: %(authors)s, “%(title)s”, version %(version)s, %(year)s.",
        **read_citation(),
    )
    sentences.append(source)
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


def quantity_words(quantity: Quantity) -> str:
    """Return the message that names a quantity; a threshold is a placeholder in it."""
    threshold = SATURATED.get(quantity.given or quantity.name)
    return quantity.words.replace(f"{threshold}$", "%(threshold)s$")


def _say(language: Language, message: str, **values: str) -> str:
    """Return a message, which catalogues find by this name, with its values."""
    level = f"95{language.numbers.before_percent}%"
    return language.translate(message) % {"level": level, **values}


def _estimate(found: Measurement, language: Language) -> str:
    """Return what was found: no grammar depends on a label before a colon."""

    def number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
        return language.numbers.plain(value, found.digits, rounding)

    label = _label(found, language)
    low, high = found.ci_low, found.ci_high
    if math.isnan(found.estimate):
        return _say(
            language,
            "%(label)s: the sample does not determine an estimate.",
            label=label,
        )
    if not (math.isfinite(low) and math.isfinite(high)):
        return _say(
            language,
            "%(label)s: the Monte Carlo estimate is %(value)s; no %(level)s confidence "
            "interval can be given.",
            label=label,
            value=number(found.estimate),
        )
    ends = {
        "label": label,
        "low": number(low, ROUND_FLOOR),
        "high": number(high, ROUND_CEILING),
    }
    if found.is_all_or_none and found.estimate:
        return _say(
            language,
            "%(label)s: the Monte Carlo estimate is $1$, with %(level)s confidence at "
            "least %(low)s.",
            **ends,
        )
    if found.is_all_or_none:
        return _say(
            language,
            "%(label)s: the Monte Carlo estimate is $0$, with %(level)s confidence at "
            "most %(high)s.",
            **ends,
        )
    return _say(
        language,
        "%(label)s: the Monte Carlo estimate is %(value)s, with a %(level)s confidence "
        "interval from %(low)s to %(high)s.",
        value=number(found.estimate),
        **ends,
    )


def _label(found: Measurement, language: Language) -> str:
    quantity = QUANTITIES[found.quantity]
    threshold = str(SATURATED.get(quantity.given or quantity.name))
    words = _say(language, quantity_words(quantity), threshold=threshold)
    words = re.split("[:：]", localise(language, words))[0]  # one colon is enough
    words = words[:1].upper() + words[1:]
    level = quantile_level(found.summary)
    summaries = {
        "mean": _say(language, "mean over rows"),
        "median": _say(language, "median over rows"),
        "spread": _say(
            language, "ratio of the highest to the lowest decile of the rows"
        ),
        "share_above": _say(
            language, "share of rows above the mean under the second divisor"
        ),
    }
    if found.summary == "mean" and quantity.indicator:
        return words  # a share of rows
    if found.summary in summaries:
        summary = summaries[found.summary]
    elif level is not None:
        percent = language.numbers.plain(100.0 * level)
        summary = _say(language, "%(level)s %% quantile over rows", level=percent)
    else:
        return words
    return _say(language, "%(quantity)s (%(summary)s)", quantity=words, summary=summary)


def _setting(found: Measurement, language: Language) -> Iterator[str]:
    yield f"$d_k = {found.d_k}$"
    if found.n_keys is not None:
        yield _say(language, "$n = %(n)s$ keys per row", n=str(found.n_keys))
    q, k = found.distribution_q, found.distribution_k
    if q == k:
        yield _say(
            language, "distribution of the entries of Q and K: `%(name)s`", name=q
        )
    else:
        yield _say(
            language,
            "distribution of the entries of Q: `%(q)s`, of K: `%(k)s`",
            q=q,
            k=k,
        )
    symbols = [
        localise(language, divisor_symbol(one)) for one in found.divisor.split("/")
    ]
    if len(symbols) == 2:
        yield _say(
            language,
            "ratio of the value with the divisor $%(over)s$ to that with $%(under)s$",
            over=symbols[0],
            under=symbols[1],
        )
    elif found.divisor == "none":
        yield _say(language, "unscaled scores")
    elif QUANTITIES[found.quantity].divided:
        yield _say(language, "divisor of the scores: $%(divisor)s$", divisor=symbols[0])
    if found.dependence != "none":
        yield _say(language, "dependence of K on Q: `%(name)s`", name=found.dependence)
    if found.initialisation:
        yield _say(language, "initialisation: `%(name)s`", name=found.initialisation)
    if found.normalisation != "none":
        yield _say(
            language,
            "normalisation of queries and keys: `%(name)s`",
            name=found.normalisation,
        )
    if found.number_format != "float64":
        yield _say(
            language,
            "number format of the weights: `%(name)s`, softmax: `%(softmax)s`",
            name=found.number_format,
            softmax=found.softmax,
        )
    sizes = {"count": found.n_replicates, "queries": found.n_queries}
    told = {name: language.numbers.text(size, 0) for name, size in sizes.items()}
    yield _say(
        language,
        "independent replicates: %(count)s, each of %(queries)s queries",
        **told,
    )
