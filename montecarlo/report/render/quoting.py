"""What a post of somebody else quotes: each claim's sentence and what was found.

In: a page's HTML.  Out: one JSON file for a language, its texts in Markdown, which
docs/jekyll/claim.html puts into a post.
"""

import copy
import json
from collections.abc import Callable

from bs4.element import Tag

#: What stands before a caption and is a number of its page.
_WHICH = ".which"


def quotations(
    tree: Tag, captions: Tag, convert: Callable[[Tag], str], cite: str
) -> str:
    """Return the claims of a page, and figures with their captions, as JSON.

    Parameters
    ----------
    tree, captions : Tag
        From `montecarlo.report.render.markdown.read_html`.
    convert : callable
        Element -> Markdown.
    cite : str
        What is to be said of where it is from.
    """
    claims = {}
    for article in tree.select("article[id^=claim-]"):
        heading, found = article.find("h3"), article.select_one(".finding")
        if heading is None or found is None:
            continue
        claims[str(article["id"]).removeprefix("claim-")] = {
            "verdict": str(found["data-verdict"]),
            "statement": convert(_bare(heading)),
            "found": convert(_bare(found)),
        }
    figures = {}
    for figure in captions.select("figure[id^=figure-]"):
        image, caption = figure.find("img"), figure.find("figcaption")
        if image is None or caption is None:
            continue
        figures[str(figure["id"]).removeprefix("figure-")] = {
            "alternative": str(image["alt"]),
            "caption": convert(_bare(caption)),
        }
    record = {"cite": cite, "claims": claims, "figures": figures}
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _bare(element: Tag) -> Tag:
    """Return a paragraph of what an element says, without the number of its page."""
    kept = copy.copy(element)
    for number in kept.select(_WHICH):
        number.decompose()
    kept.name = "div"
    kept.attrs = {}
    return kept
