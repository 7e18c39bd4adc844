"""How a case is named on a page: what differs is named differently."""

import re

import pytest

from montecarlo.attention.number_formats import SOFTMAXES
from montecarlo.report.language.catalogues import read_language
from montecarlo.report.render import pages

NAMED = '{% import "macros.html.j2" as parts with context %}'
NAMED += '{{ parts.named("gaussian", context) }}'


def named(context, code):
    """A case as the page of a language names it, without tags."""
    language = read_language(code)
    template = pages._environment().from_string(NAMED)
    functions = pages.functions_for(language, quotable=False)
    shown = template.render(
        **functions, language=language, context=context, numbers=None, explorer=None
    )
    return re.sub(r"<[^>]*>", "", shown)


@pytest.mark.parametrize("code", ["en", "de", "zh", "ja", "es"])
def test_each_way_of_adding_up_has_a_name_of_its_own(code):
    """Four ways, four names; those that differ in the sum alone begin alike."""
    names = {way: named(f"float16 {way}", code) for way in SOFTMAXES}
    assert len(set(names.values())) == len(SOFTMAXES)
    for way in ("naive", "shifted"):
        assert names[f"{way}_wide"].startswith(names[way])
