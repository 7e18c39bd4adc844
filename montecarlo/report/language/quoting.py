"""An estimate from `measure` as a paragraph in Markdown, for quoting."""

import math
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from functools import partial

from montecarlo.attention.quantities import (
    QUANTITIES,
    SATURATED,
    Quantity,
    quantile_level,
)
from montecarlo.report.language.catalogues import Language, find_shipped, localise
from montecarlo.report.language.numbers import lay_out
from montecarlo.report.language.symbols import divisor_symbol
from montecarlo.study.measured import Measurement

#: Separators between parts of the setting, and between sentences, where not English.
BETWEEN, AFTER = {"zh": "；", "ja": "、"}, {"zh": "", "ja": ""}


def quote(result: Measurement, language: Language, command: str) -> str:
    """Return a measurement as a paragraph of Markdown that can be quoted.

    Parameters
    ----------
    result : Measurement
    language : Language
    command : str
        The command that reproduces the estimate; empty if there is none.
    """
    say = partial(_translate, language)
    sentences = [_estimate_sentence(result, language)]
    if result.reference is not None:
        digits = min(result.digits / 100.0, abs(result.reference) / 1e3)
        error = max(digits, result.reference_error or 0.0)
        exact = language.numbers.plain(result.reference, error)
        sentences.append(say("The exact theoretical value is %(exact)s.", exact=exact))
    parts = BETWEEN.get(language.code, "; ").join(_setting_parts(result, language))
    sentences.append(say("Setting: %(parts)s.", parts=parts))
    if command:
        sentences.append(say("Reproduce it with: `%(command)s`.", command=command))
    cited = read_citation()
    sentences.append(
        say("Source: %(authors)s, “%(title)s”, version %(version)s, %(year)s.", **cited)
    )
    return AFTER.get(language.code, " ").join(sentences)


def read_citation() -> dict[str, str]:
    """Return what a citation of the package needs, from CITATION.cff.

    A dict with ``authors``, ``title``, ``version`` and ``year``.
    """
    text = find_shipped("CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r'^([\w-]+): "?(.*?)"?$', text, re.MULTILINE))
    authors = re.findall(r"^ +- name: (.*)$", text, re.MULTILINE)
    return {
        "authors": ", ".join(authors),
        "title": fields["title"].replace("sqrt(d_k)", "$\\sqrt{d_k}$"),
        "version": fields["version"],
        "year": fields["date-released"][:4],
    }


def quantity_words(quantity: Quantity) -> str:
    r"""Return the message that names a quantity; a threshold in it is a placeholder.

    Such as ``share of rows with $p_{\max} \ge %(threshold)s$``.
    """
    threshold = SATURATED.get(quantity.given or quantity.name)
    return quantity.words.replace(f"{threshold}$", "%(threshold)s$")


def _translate(language: Language, message: str, **values: str) -> str:
    """Return the translation of a message as text, with its placeholders filled in.

    ``%(level)s`` is the level of an interval, ``95 %``, unless ``values`` has another.
    """
    level = f"95{language.numbers.before_percent}%"
    return language.translate(message) % {"level": level, **values}


def _estimate_sentence(result: Measurement, language: Language) -> str:
    """Return the sentence about the estimate and its interval.

    Such as ``Entropy (mean over rows): the Monte Carlo estimate is 4.36 ± 0.01
    (standard error), ...``.  The label stands before a colon, so that no grammar
    depends on it.
    """

    def number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
        """Return a number as text, rounded to the same digits as the estimate."""
        return language.numbers.plain(value, result.digits, rounding)

    say, label = partial(_translate, language), _quantity_label(result, language)
    if "/" in result.divisor and result.summary != "share_above":
        label = say("%(label)s, ratio under two divisors", label=label)
    say = partial(say, label=label)
    if math.isnan(result.estimate):
        return say("%(label)s: the sample does not determine an estimate.")
    value = number(result.estimate)
    if not (math.isfinite(result.ci_low) and math.isfinite(result.ci_high)):
        return say(
            "%(label)s: the Monte Carlo estimate is %(value)s; no %(level)s confidence "
            "interval can be given.",
            value=value,
        )
    low = number(result.ci_low, ROUND_FLOOR)
    high = number(result.ci_high, ROUND_CEILING)
    if not result.is_all_or_none:
        layout = lay_out(result.estimate, result.digits)
        if result.std_error > 0.0 and not (result.factor or layout.exponent):
            value += f" ± {language.numbers.text(result.std_error, layout.decimals)}"
            value += say(" (%(what)s)", what=say("standard error"))
        return say(
            "%(label)s: the Monte Carlo estimate is %(value)s, with a %(level)s "
            "confidence interval from %(low)s to %(high)s.",
            value=value,
            low=low,
            high=high,
        )
    if result.estimate:
        return say(
            "%(label)s: the Monte Carlo estimate is $1$, with %(level)s confidence at "
            "least %(low)s.",
            low=low,
        )
    return say(
        "%(label)s: the Monte Carlo estimate is $0$, with %(level)s confidence at "
        "most %(high)s.",
        high=high,
    )


def _quantity_label(result: Measurement, language: Language) -> str:
    """Return the words for quantity and summary, with a capital letter.

    Such as ``Largest weight of a row (mean over rows)``.  The mean of an indicator,
    which is a share, and quantities without attention rows have no summary.
    """
    say, quantity = partial(_translate, language), QUANTITIES[result.quantity]
    threshold = str(SATURATED.get(quantity.given or quantity.name))
    words = localise(language, say(quantity_words(quantity), threshold=threshold))
    words = re.split("[:：]", words)[0]  # without the explanation after a colon
    words = words[:1].upper() + words[1:]
    summaries = {
        "mean": say("mean over rows"),
        "median": say("median over rows"),
        "spread": say("ratio of the highest to the lowest decile of the rows"),
        "share_above": say("share of rows above the mean under the second divisor"),
        "first": say("mean of the first row or key"),
        "last": say("mean of the last row or key"),
    }
    level = quantile_level(result.summary)
    if result.summary == "mean" and quantity.indicator:
        return words  # the mean of an indicator is a share, as its name says
    if result.summary in summaries:
        summary = summaries[result.summary]
    elif level is not None:
        percent = language.numbers.plain(100.0 * level)
        summary = say("%(level)s %% quantile over rows", level=percent)
    else:
        return words
    return say("%(quantity)s (%(summary)s)", quantity=words, summary=summary)


def _premise_words(result: Measurement, say: Callable[..., str]) -> Iterator[str]:
    """Yield words for dependence, initialisation, normalisation and mask, if there.

    Such as "mask: `causal`".  Those that the design point does not have are left out.
    ``say`` translates a message.
    """
    if result.dependence != "none":
        yield say("dependence of K on Q: `%(name)s`", name=result.dependence)
    if result.initialisation:
        yield say("initialisation: `%(name)s`", name=result.initialisation)
    if (how := result.normalisation) != "none":
        yield say("normalisation of queries and keys: `%(name)s`", name=how)
    if result.mask != "none":
        yield say("mask: `%(name)s`", name=result.mask)


def _setting_parts(result: Measurement, language: Language) -> Iterator[str]:
    """Yield the parts of the sentence on the setting, from d_k to replicates.

    Such as ``$d_k = 64$`` and ``$n = 128$ keys per row``, in Markdown.
    """
    say = partial(_translate, language)
    yield f"$d_k = {result.d_k}$"
    if result.n_keys is not None:
        yield say("$n = %(n)s$ keys per row", n=str(result.n_keys))
    q, k = result.distribution_q, result.distribution_k
    if q == k:
        yield say("distribution of the entries of Q and K: `%(name)s`", name=q)
    else:
        yield say("distribution of the entries of Q: `%(q)s`, of K: `%(k)s`", q=q, k=k)
    over, *under = (
        localise(language, divisor_symbol(one)) for one in result.divisor.split("/")
    )
    if under:
        yield say(
            "ratio of the value with the divisor $%(over)s$ to that with $%(under)s$",
            over=over,
            under=under[0],
        )
    elif result.divisor == "none":
        yield say("unscaled scores")
    elif QUANTITIES[result.quantity].divided:
        yield say("divisor of the scores: $%(divisor)s$", divisor=over)
    yield from _premise_words(result, say)
    if result.number_format != "float64":
        yield say(
            "number format of the weights: `%(name)s`, softmax: `%(softmax)s`",
            name=result.number_format,
            softmax=result.softmax,
        )
    sizes = {"count": result.n_replicates, "queries": result.n_queries}
    told = {name: language.numbers.text(size, 0) for name, size in sizes.items()}
    yield say("independent replicates: %(count)s, each of %(queries)s queries", **told)
