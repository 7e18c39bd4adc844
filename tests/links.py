"""Where links lead: those of a built site, and those of Markdown files."""

import posixpath
import re
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

FENCE = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
HEADING = re.compile(r"^#+ (.*?)(?: \{#([\w-]+)\})?$", re.MULTILINE)


class Page(HTMLParser):
    """Anchors of a page, and what it links to or loads."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.targets = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, _, attrs):
        """Note an element's name and addresses."""
        has = dict(attrs)
        self.anchors |= {has[name] for name in ("id", "name") if has.get(name)}
        self.targets += [has[name] for name in ("href", "src") if has.get(name)]


class Markdown:
    """The same of a Markdown file, as a host of repositories shows it."""

    def __init__(self, path):
        text = FENCE.sub("", path.read_text(encoding="utf-8"))
        self.anchors = {
            name
            or re.sub(r"[^\w\- ]", "", INLINE.sub(bare, words))
            .lower()
            .replace(" ", "-")
            for words, name in HEADING.findall(text)
        }
        self.targets = LINK.findall(INLINE.sub("", text))


def slug(heading):
    """Return the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")


def bare(code):
    """Return what stands between the marks of code."""
    return code[0].strip("`")


READERS = {".html": Page, ".md": Markdown}


@cache
def read(path):
    """Read a file that can have links, once."""
    return READERS[path.suffix](path)


def dead_links(root, paths, made=()):
    """Return how many links some files have, and those that lead nowhere.

    Addresses elsewhere are looked at for their form alone.  ``made`` are folders that
    are there once the site is built; an absolute path is one below the root.
    """
    followed, dead = 0, []
    for path in paths:
        for target in read(path).targets:
            followed += 1
            if not leads_somewhere(target, path, root, made):
                dead.append(f"{path.relative_to(root)}: {target}")
    return followed, dead


def leads_somewhere(target, path, root, made):
    """Tell whether a link of a file leads to a file, and to an anchor of it."""
    parts = urlsplit(target)
    if parts.scheme:
        host = re.fullmatch(r"[\w-]+(\.[\w-]+)+|localhost(:\d+)?", parts.netloc)
        return parts.scheme == "data" or (parts.scheme == "https" and bool(host))
    folder = "" if parts.path.startswith("/") else path.parent.relative_to(root)
    place = posixpath.normpath(posixpath.join(folder, unquote(parts.path).lstrip("/")))
    if any(f"{place}/".startswith(one) for one in made):
        return True
    there = root / place if parts.path else path
    if not there.exists() or not there.resolve().is_relative_to(root.resolve()):
        return False
    if not parts.fragment or there.suffix not in READERS:
        return True
    return unquote(parts.fragment) in read(there).anchors
