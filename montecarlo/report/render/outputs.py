"""What a report is written as: pages, Markdown, fragments, or findings as JSON.

Contents in, files of one format out; the pages themselves are made in `making`.
"""

import json
import re
from collections.abc import Callable, Iterable
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec

from montecarlo.report.language.catalogues import SOURCE, Language, read_language
from montecarlo.report.language.own_words import OwnWords, Shown
from montecarlo.report.render.errata_markdown import erratum_markdown
from montecarlo.report.render.markdown import read_html, to_markdown
from montecarlo.report.render.pages import (
    Contents,
    render_captions,
    render_erratum,
    render_fragment,
)
from montecarlo.report.render.reproduce import canonical_command
from montecarlo.results.folder import write_json, write_text

#: Calls a function for each of some arguments, as ``map`` does: the languages of an
#: output are written beside each other.
Spread = Callable[..., Iterable[Any]]
_STYLES = re.compile(r"(<style\b.*?</style>)", re.DOTALL)
_BRACES = {ord(brace): f"&#{ord(brace)};" for brace in "{}"}
#: Version of the shape of findings.json.
SCHEMA = 3


def write_markdown(contents: Contents, folder: Path, spread: Spread) -> None:
    """Write one post for each language, and the errata, as Markdown for kramdown."""
    posts = spread(_post_in, repeat(contents), contents.languages)
    for code, post in zip(contents.languages, posts, strict=True):
        write_text(folder / f"report-{code}.md", post)
    write_errata(contents, folder, _beside)


def _post_in(contents: Contents, code: str) -> str:
    """Return the post of a language."""
    language = read_language(code)
    tree = read_html(render_fragment(contents, language, quotable=True))
    heading = tree.find("h1")
    title = "" if heading is None else _plain_title(contents, language)
    if heading is not None:
        heading.tag, heading.children = "p", []
    return front_matter(code, title) + to_markdown(tree, _beside)


def write_errata(
    contents: Contents, folder: Path, link: Callable[[str], str] = str
) -> None:
    """Write the erratum of each text as Markdown; ``link`` says what it points to."""
    for erratum in contents.errata:
        language = read_language(erratum.language)
        page = render_erratum(contents, erratum, language, quotable=True)
        text = erratum_markdown(erratum.key, page, link)
        write_text(folder / f"erratum-{erratum.key}.md", text)


def front_matter(code: str, title: str) -> str:
    """Return what a static site wants to know of a post; keys in their order.

    Parameters
    ----------
    code : str
        That of the language.
    title : str
        Without double quotes, which would end it.
    """
    values = {
        "audio": "false",
        "generated": "true",
        "lang": code,
        "layout": "post",
        "title": json.dumps(title.replace('"', "'"), ensure_ascii=False),
        "translated": "false" if code == SOURCE else "true",
        "type": "note",
    }
    lines = [f"{key}: {value}" for key, value in values.items()]
    return "\n".join(["---", *lines, "---", "", ""])


def _plain_title(contents: Contents, language: Language) -> str:
    """Return the title of the pages, which has no formula."""
    heading = read_html(render_captions(contents, language)).find("h1")
    return "" if heading is None else heading.text().strip()


def _beside(address: str) -> str:
    """Return an address as it is beside a post: figures are files, errata Markdown."""
    if address.startswith("#figure-"):
        return f"figures/{address.removeprefix('#figure-')}.svg"
    address = re.sub(r"^(erratum-[\w-]+)\.html", r"\1.md", address)
    return re.sub(r"^(\w{2})\.html#", r"report-\1.md#", address)


def write_fragments(contents: Contents, folder: Path, spread: Spread) -> None:
    """Write one element for each language, to be put into a page of someone else's."""
    texts = spread(_fragment_in, repeat(contents), contents.languages)
    for code, text in zip(contents.languages, texts, strict=True):
        write_text(folder / f"fragment-{code}.html", text)


def _fragment_in(contents: Contents, code: str) -> str:
    """Return the element of a language."""
    return without_tags(render_fragment(contents, read_language(code)))


def without_tags(html: str) -> str:
    """Write braces so that no template engine takes them for a tag of its own.

    Jinja, Liquid, Hugo and their like run over files before a browser reads them.  In
    texts and attributes a brace is written by its number, and read as the same; in
    styles, where numbers mean nothing, a space is as good.
    """
    parts = _STYLES.split(html)
    parts[::2] = (text.translate(_BRACES) for text in parts[::2])
    parts[1::2] = (re.sub(r"\{(?=[{%#])", "{ ", style) for style in parts[1::2])
    return "".join(parts)


def write_findings(
    contents: Contents,
    folder: Path,
    spread: Spread,  # noqa: ARG001 - writers share one signature
) -> None:
    """Write findings.json: every verdict with its words, numbers and rows."""
    languages = [read_language(code) for code in contents.languages]
    write_json(folder / "findings.json", findings_record(contents, languages))


def findings_record(contents: Contents, languages: list[Language]) -> dict[str, Any]:
    """Return the findings as plain data: lists, mappings, texts and numbers.

    Parameters
    ----------
    contents : Contents
    languages : list of Language
        Those that sentences are given in.

    Returns
    -------
    dict
        A text is a mapping from codes of languages to what stands there, formulas
        between dollars; infinite ends of intervals are null.
    """
    findings = contents.findings

    def worded(words: Shown | None) -> dict[str, str] | None:
        if words is None:
            return None
        if isinstance(words, OwnWords):
            return dict(words.texts)
        return {each.code: each.translate(words) for each in languages}

    def record(value: object) -> Any:  # noqa: ANN401 - plain data of any shape
        """Turn a view into a mapping, texts by language; numbers are left alone.

        What the judge wrote stands there as it is, beside what the view adds.
        """
        if isinstance(value, OwnWords):
            return worded(value)
        if isinstance(value, tuple | list):
            return [record(item) for item in value]
        fields = getattr(value, "__dataclass_fields__", None)
        if fields is None:
            return msgspec.to_builtins(value)
        made = {name: getattr(value, name) for name in fields}
        judged = msgspec.to_builtins(made.pop("outcome", {}))
        judged.pop("findings", None)  # the one that is said stands alone
        for name, part in made.items():
            if name == "names":
                judged[name] = {key: worded(words) for key, words in part.items()}
            else:
                judged[name] = worded(part) if name in _WORDS else record(part)
        return judged

    run = findings.run
    return {
        "program": "montecarlo",
        "schema": SCHEMA,
        "languages": [language.code for language in languages],
        "command": canonical_command(run),
        "seed": run["seed"],
        "versions": dict(run["versions"]),
        "error_rate": findings.record.error_rate,
        "simultaneous_error": findings.record.simultaneous_error,
        "counts": dict(findings.counts),
        "claims": [record(claim) for claim in findings.by_weight()],
        "passages": {
            place: [record(said) for said in passages]
            for place, passages in findings.passages.items()
        },
        "self_checks": [record(check) for check in findings.self_checks],
        "figures": {name: dict(fact) for name, fact in contents.facts.items()},
    }


#: Fields of views that hold texts.
_WORDS = {"statement", "text", "label"}
