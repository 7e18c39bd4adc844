"""Languages: complete catalogues, safe to show, and no page falls back to English."""

import csv
import io
import re
from collections import Counter
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from markupsafe import Markup

from montecarlo.errors import InputError
from montecarlo.report.language import catalogues, messages
from montecarlo.report.language.catalogues import (
    LANGUAGES,
    SOURCE,
    Language,
    catalogue_path,
    read_language,
    translation_fault,
)
from montecarlo.report.language.formulas import prose
from montecarlo.report.language.messages import source_messages

ROOT = Path(__file__).parents[3]
GLOSSARY = ROOT / "report_templates" / "locale" / "glossary.csv"
TRANSLATED = tuple(code for code in LANGUAGES if code != SOURCE)
#: Words that stand in English beyond this part of a catalogue were forgotten.
MOST_AS_IN_ENGLISH = 0.05
FORMULA = re.compile(r"\$[^$]+\$")
PLACEHOLDER = re.compile(r"%\(\w+\)s")
#: As in the name of a claim of record.
YEAR = re.compile(r"(?<!\d)20[0-2]\d(?!\d)")
HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n\n'


@pytest.fixture(scope="module")
def sources():
    """Every message, with the places where it stands."""
    return source_messages()


@pytest.fixture(params=TRANSLATED)
def catalogue(request):
    """The catalogue of each language but the source."""
    text = catalogue_path(request.param).read_bytes()
    return read_po(io.BytesIO(text), locale=request.param)


def test_a_translation_is_one(catalogue):
    """What was copied from English in bulk is no translation."""
    same = [source for source, target in pairs(catalogue) if source == target]
    assert len(same) <= MOST_AS_IN_ENGLISH * len(pairs(catalogue)), same


def pairs(catalogue):
    """Return messages with their translations, those that are translated."""
    whole = (m for m in catalogue if m.id and m.string and not m.fuzzy)
    return [(str(m.id), str(m.string)) for m in whole]


def is_filled(places):
    """Tell whether numbers are put into a message, so that % signs are doubled.

    Those of templates and modules are, quantities, and the sentences of claims.
    """
    sentence = re.compile(r"passage |claim [\w-]+, (?!interpretation )")
    return any(
        place.endswith((".j2", ".py", "a quantity")) or sentence.match(place)
        for place in places
    )


def without(text, *patterns):
    """Return a text with formulas, placeholders and the like taken out."""
    for pattern in patterns:
        text = pattern.sub(" ", text)
    return text


def test_every_message_is_translated(catalogue, sources):
    """None lacks or is in doubt, and none is left of yesterday."""
    assert {source for source, _ in pairs(catalogue)} == set(sources)
    assert list(catalogue.obsolete) == []


def test_every_translation_is_sound(catalogue):
    """Each keeps its per cent signs and stays in its line."""
    for source, target in pairs(catalogue):
        assert target.count("%%") == source.count("%%"), target
        assert not set("\n\t") & set(target), target


def test_no_message_holds_a_number(catalogue):
    """Numbers come from the results: messages hold digits in formulas and years."""
    for pair in pairs(catalogue):
        for text in pair:
            bare = without(text, FORMULA, PLACEHOLDER, YEAR)
            assert not re.search(r"\d", bare), text


def test_translation_really_formats(catalogue, sources):
    """Filled in, a translation shows each value once and has its formulas set."""
    for source, target in pairs(catalogue):
        names = re.findall(r"%\((\w+)\)s", source)
        if not is_filled(sources.get(source, ())):
            assert not names
            assert "%" not in FORMULA.sub("", target), target
            prose(Markup(target))  # noqa: S704 - that it is safe is tested above
            continue
        values = {name: f"value-{name}" for name in names}
        shown = Markup(target) % values  # noqa: S704 - likewise
        assert all(shown.count(f"value-{name}") for name in names)
        assert "%%" not in shown
        if not any(
            f"value-{name}" in f for f in FORMULA.findall(shown) for name in names
        ):
            prose(shown)


@pytest.fixture
def use(monkeypatch, tmp_path):
    """Let every language be read from a file of the test's own."""
    path = tmp_path / "montecarlo.po"

    def use_catalogue(text, header=HEADER):
        path.write_text(header + text, encoding="utf-8")
        for module in (catalogues, messages):
            monkeypatch.setattr(module, "catalogue_path", lambda code: path)
        return path

    return use_catalogue


MARKUP = (
    "<script>alert(1)</script>",
    "<b>geschätzt</b>",
    "a &amp; b",
    "a > b",
    r"\"><img src=x onerror=alert(1)>",
)
COUNTED = "about %(count)s replicates would decide"
MISCOUNTED = (
    "etwa %(zahl)s Wiederholungen",
    "etwa viele Wiederholungen",
    "etwa %(count)d Wiederholungen",
    "etwa %(count)s %",
    "etwa %s von %(count)s",
    "etwa %(count)s, also %(count)s",
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((f'msgid "supported"\nmsgstr "{one}"\n', "markup") for one in MARKUP),
        ('msgid "supported"\nmsgstr ""\n', "fuzzy or empty"),
        ('#, fuzzy\nmsgid "supported"\nmsgstr "gestützt"\n', "fuzzy or empty"),
        *(
            (f'msgid "{COUNTED}"\nmsgstr "{one}"\n', "placeholder")
            for one in MISCOUNTED
        ),
        ('msgid "at $d_k$"\nmsgstr "bei $d_v$"\n', "formula"),
    ],
)
def test_unsound_translation_is_english(use, text, said):
    """A message whose translation is unsound appears in English, marked as such."""
    path = use(text)
    source = re.search('msgid "(.+)"', text)[1]
    language = read_language("de")
    assert language.translate(source) == source
    marked = language.markup(source)
    assert str(marked) == f'<span lang="en">{source}</span>'
    assert "<" not in language.say_plain(source, count=3)
    (message,) = [m for m in read_po(io.BytesIO(path.read_bytes())) if m.id]
    assert said in translation_fault(message)


@pytest.mark.parametrize("text", ["no catalogue\n", None])
def test_catalogue_that_cannot_be_read_is_refused(use, text):
    """A file that is no catalogue, or is not there, is an error with the language."""
    path = use(text or "")
    if text is None:
        path.unlink()
    with pytest.raises(InputError, match="'de' must have a catalogue"):
        read_language("de")


def pseudo(sources):
    """Return a language in which every message says that it was translated."""
    messages = {source: f"⟦{source}⟧" for source in sources}
    return Language("de", "de", "Deutsch", messages)


@pytest.fixture(scope="module")
def marked(report, sources):
    """The page in a language whose messages stand in brackets of their own."""
    return report.render(report.contents, pseudo(sources))


def untranslated(page, sections=("二",)):
    """Return the words that stand outside of messages, formulas and code."""
    named = re.compile(
        "|".join(f"§\N{NO-BREAK SPACE}{re.escape(s)}(?!\\w)" for s in sections)
    )
    depth, found = 0, []
    for text, element in page.texts():
        tags = {e.tag.rpartition("}")[2] for e in page.above(element)}
        allowed = (
            bool(tags & {"math", "code", "abbr"})  # an abbreviation is a text's key
            or element.get("lang") is not None
            or element.get("href") == text
        )
        is_label = element.get("class") == "label"
        for sign in named.sub("", text) if is_label else text:
            depth += (sign == "⟦") - (sign == "⟧")
            if sign.isalpha() and depth == 0 and not allowed:
                found.append(text)
                break
    assert depth == 0
    return found


def test_every_word_is_a_message(marked, report):
    """No word of a page stands in a template without being translated."""
    sections = {
        source["section"]
        for claim in report.claims["claims"]
        for source in claim["sources"]
    }
    assert untranslated(marked, sections) == []


def test_every_attribute_is_a_message(marked):
    """Alternative texts, labels and the title are translated as well."""
    seen = Counter()
    for element in marked.elements():
        texts = [element.get(name) for name in ("alt", "aria-label", "title")]
        if element.tag == "title":
            texts.append(element.text)
        for text in texts:
            if text:
                seen[element.tag] += 1
                assert re.fullmatch("(⟦[^⟦⟧]+⟧)+[0-9]*", text), text
    assert seen["img"] == len(list(marked.root.iter("img"))) > 3
    assert seen["title"] == 1
    assert seen["nav"] == 2


def test_every_word_about_own_claims_is_a_message(own_report, sources):
    """Nor does one of a page about a user's claims: the rest is what the user wrote."""
    contents = own_report.with_words(lambda text: f"⟦{text}⟧")
    page = own_report.render(contents, pseudo(sources))
    assert untranslated(page, {"3.1"}) == []
    assert any("⟦ (in Japanisch)⟧" in text for text, _ in page.texts())


@pytest.fixture(scope="module")
def glossary():
    """Terms with their forms in each language, longest terms first."""
    if not GLOSSARY.exists():
        pytest.skip("report_templates/locale/glossary.csv is not written yet")
    with GLOSSARY.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    return sorted(rows, key=lambda row: -max(map(len, row["en"].split("|"))))


def test_glossary_is_complete(glossary):
    """Every term has a form in every language, and stands once."""
    for row in glossary:
        for code in LANGUAGES:
            assert row[code].strip(), row
            assert all(form.strip() for form in row[code].split("|")), row
    terms = [form.strip().lower() for row in glossary for form in row["en"].split("|")]
    assert len(set(terms)) == len(terms)


def terms_in(message, glossary):
    """Yield the terms of a message; a term inside of a longer one does not count."""
    rest = without(message, FORMULA, PLACEHOLDER)
    for row in glossary:
        for form in sorted(row["en"].split("|"), key=len, reverse=True):
            pattern = re.compile(rf"\b{re.escape(form.strip())}\b", re.IGNORECASE)
            if pattern.search(rest):
                rest = pattern.sub(" ", rest)
                yield row


def test_terms_are_translated_as_agreed(glossary, catalogue):
    """Where English uses a term, the translation uses one of its agreed forms."""
    wrong, used = [], set()
    code = str(catalogue.locale)
    for source, target in pairs(catalogue):
        for row in terms_in(source, glossary):
            used.add(row["en"])
            forms = [form.strip().lower() for form in row[code].split("|")]
            if not any(form in target.lower() for form in forms):
                wrong.append((row["en"], row[code], source, target))
    assert len(used) > 5
    assert wrong == []


def test_missing_message_is_shown_in_english(report, sources):
    """A page is rendered all the same; what its catalogue lacks is marked, no more.

    A title has no place for a mark.
    """
    title = "Why are attention scores divided by the root of the dimension?"
    rest = {s: f"⟦{s}⟧" for s in sources if s not in {"How it was made", title}}
    page = report.render(report.contents, Language("de", "de", "Deutsch", rest))
    spans = [e for e in page.elements() if e.tag == "span" and e.get("lang") == "en"]
    assert {"".join(e.itertext()) for e in spans} == {"How it was made"}
    assert set(untranslated(page)) <= {title}
    assert page.root.find("head/title").text == title
