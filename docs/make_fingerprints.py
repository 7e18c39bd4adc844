"""Make the positions and fingerprints of the judged texts again from their files.

``python docs/make_fingerprints.py KEY=FILE ...`` writes
``montecarlo/claims/fingerprints.toml``, which holds no sentence.  Keys are those of the
catalogue's texts, and all of them have to be given.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from montecarlo.claims.catalogue import read_catalogue
from montecarlo.report.content.texts.author_texts import (
    KnownText,
    know_text,
    read_author_file,
    text_paths,
)

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# What is known of the judged texts, without a word of them: the number of lines, the
# sha256 of the whole with its line ends folded, and the fingerprint of each sentence by
# line and number within it.  Made by docs/make_fingerprints.py.
"""


def fingerprints_toml(texts: dict[str, KnownText]) -> str:
    """Return the file for some texts."""
    parts = [HEAD]
    for key, text in texts.items():
        marks = [f'"{a}.{b}" = "{mark}"\n' for (a, b), mark in text.sentences.items()]
        head = f'[{key}]\nlines = {text.lines}\nsha256 = "{text.sha256}"\n'
        parts.append("".join([head, f"\n[{key}.sentences]\n", *marks]))
    return "\n".join(parts)


def main(typed: Sequence[str]) -> None:
    """Write the file."""
    languages = {text.key: text.language for text in read_catalogue().text}
    paths = text_paths(typed, languages)
    if missing := [key for key in languages if key not in paths]:
        raise ValueError(f"texts must all be given, got none for {missing[0]!r}")
    texts = {
        key: know_text(read_author_file(key, paths[key]), language)
        for key, language in languages.items()
    }
    target = ROOT / "montecarlo" / "claims" / "fingerprints.toml"
    target.write_text(fingerprints_toml(texts), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
