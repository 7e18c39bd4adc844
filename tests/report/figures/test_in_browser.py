"""Words of figures as a browser sets them: none is cut, small, or upon another."""

import pytest

from montecarlo.report.language.catalogues import LANGUAGES, read_language

pytestmark = [pytest.mark.browser, pytest.mark.slow]

#: Pixels that a figure is wide on a page of 390 and of 1280.
WIDTHS = (366, 560)
#: Pixels that a line of text is high, at least.
LEAST = 11.0
#: What sticks out of its figure, is too small, or stands upon something else; a box of
#: text is as high as its font, which its letters do not fill.
FAULTS = """([least]) => {
  const faults = [];
  for (const host of document.querySelectorAll("div")) {
    const svg = host.shadowRoot.querySelector("svg");
    const around = svg.getBoundingClientRect();
    const lines = [...svg.querySelectorAll("text")].map(text => {
      const box = text.getBoundingClientRect();
      const size = parseFloat(getComputedStyle(text).fontSize)
        * around.width / svg.viewBox.baseVal.width;
      return {said: text.textContent, left: box.left, right: box.right,
              top: box.bottom - 0.95 * size, bottom: box.bottom - 0.2 * size, size};
    });
    for (const [place, one] of lines.entries()) {
      if (one.size < least) faults.push([host.id, "small", one.said]);
      if (one.left < around.left || one.right > around.right
          || one.top < around.top || one.bottom > around.bottom)
        faults.push([host.id, "cut", one.said]);
      for (const other of lines.slice(place + 1))
        if (one.left < other.right && other.left < one.right
            && one.top < other.bottom && other.top < one.bottom)
          faults.push([host.id, "upon", one.said, other.said]);
    }
    if (!lines.length) faults.push([host.id, "no text"]);
  }
  return faults;
}"""


#: Puts figures into a page, each with its own style alone.
SHOW = """([figures, width]) => {
  for (const [name, svg] of figures) {
    const host = document.body.appendChild(document.createElement("div"));
    host.id = name;
    host.attachShadow({mode: "open"}).innerHTML =
      `<style>svg { width: ${width}px; height: auto }</style>` + svg;
  }
}"""


@pytest.fixture
def faults(browser):
    """What is wrong with figures, by name, shown so many pixels wide."""

    def find(svgs, width):
        page = browser.new_page(viewport={"width": width + 20, "height": 800})
        page.evaluate(SHOW, [list(svgs.items()), width])
        found = page.evaluate(FAULTS, [LEAST])
        page.close()
        return found

    return find


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("code", LANGUAGES)
def test_every_word_has_its_place(drawings, faults, code, width):
    """In every figure: all of it is seen, at 11 pixels or more, and upon no other."""
    language = read_language(code)
    svgs = {name: drawing.svg_in(language) for name, drawing in drawings.items()}
    assert faults(svgs, width) == []
