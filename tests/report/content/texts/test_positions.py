"""Sentences of a text: where they end, and what they are known by."""

import time
import unicodedata

import pytest

from montecarlo.report.content.texts.positions import (
    fingerprint,
    prose_lines,
    split_sentences,
)

SPLITS = [
    ("de", ["Eins ist so.", "Zwei auch!", "Drei?"]),
    (
        "de",
        ["Es gilt z. B. Folgendes, d. h. alles.", "Nach Abb. 3 u. a. von A. Meier."],
    ),
    ("de", ["Der Wert 2.5 (ca. 3. Oder 4) bleibt.", "Er sinkt; dann steigt er:"]),
    ("de", ["Er sagte „Halt. Ja.“ und ging.", "(Ganz. Eingeklammert.)", "Ende"]),
    ("de", ["Es sind 5.", "Dann 6."]),
    (
        "de",
        [
            r"Es ist \\(a. B!\\).",
            r"\\( x \\) ist $ y. Z $ oder $$u. V$$.",
            "Und `a. B`.",
        ],
    ),
    ("de", ["Er ging usw. und kam ...", "Nie blieb er... sagt man."]),
    ("de", ["**Warum nicht?**:"]),
    ("de", ["**Fett.**", "Danach (offen.", "Neu"]),
    ("es", ["¿Qué pasa?", "Nada, p. ej. Eso."]),
    ("es", ['El artículo ("Todo. Nada" de Pérez et al., 2020) dice.', "Sí."]),
    ("es", ["Según Pérez et al. Todo va bien.", "¿Y?, preguntó."]),
    ("es", ["Los demás valen 0.", "Esto basta."]),
    ("zh", ["这是一。", "这是二！", "“三。四。”是五？", "六"]),
    ("zh", ["值为 2.5（约。三），见 Fig.3。", "好。）", "完"]),
    ("zh", ["很大。", "**注意**：小！", "*四。*", '"五。六"是。', "七"]),
    ("zh", ["为何?", "因为如此。"]),
    ("zh", ["为何?(注意。这里)", "因为；所以"]),
    ("zh", ["**问题**：值 $ a。b $ 很大。", "然后"]),
    (
        "ja",
        [
            "これは一です。",
            r"\\( x \\) は二です。",
            "「三。四」と言う。",
            "五（六。七）。",
        ],
    ),
    ("ja", ["**なぜ \\\\( d \\\\) か？**：次です。", "**注**：五。"]),
    ("en", ["See Fig. 3 by J. Doe et al. It holds.", "Yes."]),
]


@pytest.mark.parametrize(("language", "sentences"), SPLITS)
@pytest.mark.parametrize("mark", ["", "- ", "    - ", "1.  ", "### ", "> ", " 2) "])
def test_line_is_split(language, sentences, mark):
    """Sentences end where they end, whatever stands in them or before the first."""
    joint = "" if language in {"zh", "ja"} else " "
    assert split_sentences(mark + joint.join(sentences), language) == sentences


@pytest.mark.parametrize("line", ["", "   ", "- ", "**", "：", "..."])
def test_line_without_words_has_no_sentence(line):
    """A mark alone is no sentence."""
    assert split_sentences(line, "de") == []


@pytest.mark.parametrize(
    "line", ["- Eins. Zwei (drei.", "1. a", 'x "y. Z', "。。a!?。b"]
)
@pytest.mark.parametrize("language", ["de", "zh"])
def test_nothing_is_lost(line, language):
    """Every word of a line is in one of its sentences."""
    words = "".join(split_sentences(line, language))
    assert [c for c in words if c.isalpha()] == [c for c in line if c.isalpha()]


def test_prose_has_no_front_matter_formulas_or_rules():
    """Lines keep their numbers; what is no prose is passed over."""
    before = "---\ntitle: X. Y\n---\n\nEins.\n---\n"
    text = f"{before}$$\nx. Y\n$$\n```\nz. Z\n```\n$$a$$\nDrei."
    numbers = [number for number, _ in prose_lines(text)]
    assert numbers == [5, 14]


def test_rule_at_the_beginning_is_no_front_matter():
    """Without a second rule nothing is passed over."""
    assert [number for number, _ in prose_lines("---\nEins.")] == [2]


def test_fingerprint_knows_a_sentence_by_its_signs():
    """White space and composition do not matter; a sign does."""
    mark = fingerprint("Über  alles:\tja.")
    assert mark == fingerprint(unicodedata.normalize("NFD", " Über alles: ja. "))
    assert mark != fingerprint("Über alles; ja.")
    assert len(mark) == 16
    assert int(mark, 16) >= 0


@pytest.mark.parametrize("line", ["(" * 9000, "„(" * 4000, "\\(" * 3000, "ab." * 3000])
def test_what_is_never_closed_takes_no_time(line):
    """Each place of a line is looked at once, however many brackets stay open."""
    started = time.process_time()
    assert split_sentences(f"{line} a.", "de")
    assert time.process_time() - started < 3.0
