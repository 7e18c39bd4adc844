"""One answer as a paragraph: what it says, in five languages, for every quantity."""

import re
from dataclasses import replace

import pytest

from montecarlo import measure
from montecarlo.attention.quantities import QUANTITIES
from montecarlo.report.language.catalogues import LANGUAGES, read_language
from montecarlo.report.language.messages import source_messages
from montecarlo.report.language.quoting import quote, read_citation
from tests.commands import measure as main

POINT = ("--d-k", "4", "--keys", "8", "--most", "16", "--relative-error", "0.9")
#: Decimal sign of each language.
SIGNS = {"en": ".", "de": ",", "zh": ".", "ja": ".", "es": ","}


@pytest.fixture(scope="module")
def entropy():
    """An estimate with an exact value."""
    return measure(d_k=4, n_keys=8, quantity="entropy", most=16)


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_paragraph_holds_what_is_quoted(entropy, code):
    """Estimate, its error, interval and exact value with the language's sign, command,
    source.
    """
    told = quote(entropy, read_language(code), "montecarlo --seed 1")
    found = re.findall(rf"\d\{SIGNS[code]}\d+", told.split("`")[0])
    numbers = [float(one.replace(",", ".")) for one in found]
    wanted = [entropy.estimate, entropy.std_error, entropy.ci_low, entropy.ci_high]
    wanted.append(entropy.reference)
    assert numbers == pytest.approx(wanted, abs=0.05 * entropy.std_error)
    assert "`montecarlo --seed 1`" in told
    assert "$d_k = 4$" in told
    assert "\n" not in told
    assert read_citation()["version"] in told


@pytest.mark.parametrize("code", sorted({*LANGUAGES} - {"en"}))
def test_every_quantity_has_its_sentence(entropy, code):
    """Nothing of the frame is in English or unfilled, and a label has no colon."""
    language = read_language(code)
    said = {one for one, places in source_messages().items() if "quoting.py" in places}
    assert len(said) > 20
    assert said <= set(language.messages)
    for name in QUANTITIES:
        for estimate, high in ((entropy.estimate, 9.0), (0.0, 0.5), (1.0, 1.0)):
            made = replace(entropy, quantity=name, estimate=estimate, ci_high=high)
            told = quote(made, language, "")
            assert "%" not in re.sub(r"(95|90|10)[-\s]?%", "", told)
            assert len(re.findall("[:：]", re.split("[.。]", told)[0])) <= 1
            assert told.count("$") % 2 == 0


def test_the_command_of_a_paragraph_gives_it_again(capsys):
    """With its seed, typed or not; languages stand in the order asked for."""
    typed = [*POINT, "--quantity", "entropy", "--markdown"]
    assert main([*typed, "--lang", "es,en"]) == 0
    spanish, english = capsys.readouterr().out.strip().split("\n\n")
    assert (spanish[:8], english[:7]) == ("Entropía", "Entropy")
    (again,) = re.findall("`python -m montecarlo measure (.*?)`", english)
    assert again.endswith("--seed 1")
    assert main(again.split()) == 0
    assert capsys.readouterr().out.strip() == f"{spanish}\n\n{english}"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--markdwn",), "Did you mean '--markdown'"),
        (("--lang", "de"), "--lang must stand with --markdown"),
        (("--markdown", "--lang", "fr"), "lang must be one of"),
        (("--json", "--markdown"), "--json must stand without --markdown"),
    ],
)
def test_formats_that_cannot_be_are_refused(capsys, more, told):
    """Before anything is sampled."""
    assert main([*POINT, "--quantity", "entropy", *more]) == 2
    assert told in capsys.readouterr().err
