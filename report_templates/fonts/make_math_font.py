#!/usr/bin/env python
# /// script
# requires-python = ">=3.11"
# dependencies = ["fonttools[woff]>=4.60"]
# ///
"""Make math.woff2: the part of STIX Two Math that this project's formulas need.

In: the path of STIXTwoMath-Regular.ttf, version 2.11.  It is part of the wheel of the
package ziamath (0.13), which is a zip archive: ziamath/fonts/STIXTwoMath-Regular.ttf.
Out: math.woff2 beside this script, the same bytes for the same font and the same
versions of fontTools and brotli.

A browser without a math font draws poor formulas: roots and brackets do not grow, sums
stay small.  So the pages carry their own.  It keeps the MATH table with the sizes and
parts of what grows.  Left out: hints, kerning, and other forms of letters for
subscripts, which Chromium does not ask for and which would double the size.  What is
changed is told where it is done.

The font is under the SIL Open Font License (OFL.txt, beside this script), which does
not let a changed font bear a reserved name: this one is called Montecarlo Math.

    python make_math_font.py STIXTwoMath-Regular.ttf
"""

import argparse
import string
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

NAME = "Montecarlo Math"
SOURCE_NAME = "STIX Two Math"

#: Browsers draw the single letter of an <mi> as a letter of the mathematical italic
#: alphabet, which has a gap where the Planck constant was before it.
ITALIC = {
    letter: chr(first + place)
    for first, alphabet in (
        (0x1D434, string.ascii_uppercase),
        (0x1D44E, string.ascii_lowercase),
        (0x1D6FC, "αβγδεζηθικλμνξοπρςστυφχψω∂ϵϑϰϕϱϖ"),
    )
    for place, letter in enumerate(alphabet)
} | {"h": "ℎ"}

#: What the font holds, by what it is for.
CHARACTERS = {
    "upright letters: Var, max, ln": string.ascii_letters + "ΓΔΘΛΞΠΣΥΦΨΩ",
    "italic letters: q, d, σ": "".join(ITALIC.values()),
    "bold letters": "".join(chr(0x1D400 + place) for place in range(52)),
    "letters of their own: E, N, O, P, R, the indicator": "𝔼ℰ𝒩𝒪ℙℝ𝟙ℓ∂∇∞∅",
    "numbers": string.digits + ".,%",
    "binary operators": "+−-±×⋅·/∗∘",
    "relations": "=≠≡<>≤≥≪≫≈∼∝∈∉→↦⊤",
    "sums, which grow": "∑∏∫",
    "roots, which grow": "√",
    "fences, which grow": "()[]{}|‖⟨⟩⌊⌋⌈⌉",
    "accents, spacing and combining: hat, bar, tilde, arrow, dot": "ˆ¯˜˙\u0302\u0304"
    "\u0303\u0305\u0332\u0307\u20d7",
    "braces above and below, which grow": "⏞⏟",
    "primes and punctuation": "′″:;!'…⋯",
    "spaces, and operators without a sign": " \u00a0\u2061\u2062\u2063\u2064",
}

#: Sizes that are kept of what can also be put together from parts.
MOST_SIZES = 7
#: Signs that stand raised by themselves, and again so as a superscript; there the font
#: has the larger and lower ones that LaTeX has.
PRIMES = "′″"


def make_font(source: Path) -> TTFont:
    """Return the part of the font at a path that `CHARACTERS` name.

    Parameters
    ----------
    source : Path
        STIX Two Math as TrueType.

    Returns
    -------
    TTFont
        Renamed, with the notices of the source.  To be saved as it is.

    Raises
    ------
    ValueError
        If it is another font.
    MissingUnicodesSubsettingError
        If it lacks a character.
    """
    font = TTFont(source)
    if (found := font["name"].getDebugName(1)) != SOURCE_NAME:
        raise ValueError(f"{source} must be {SOURCE_NAME}, is {found}")
    even_widths(font)
    lower_primes(font)
    options = Options(
        bidi_closure=False,  # mirrored signs: formulas run from left to right
        flavor="woff2",
        glyph_names=False,
        hinting=False,
        ignore_missing_unicodes=False,
        layout_features=[],
        legacy_cmap=False,
        # Copyright, family, style, full name, version, PostScript name, trademark,
        # licence and its address.
        name_IDs=[0, 1, 2, 4, 5, 6, 7, 13, 14],
    )
    options.drop_tables += ["DSIG", "GDEF", "GPOS", "GSUB", "gasp"]
    subsetter = Subsetter(options)
    subsetter.populate(text="".join(CHARACTERS.values()))
    subsetter.subset(font)
    for name_id, name in {1: NAME, 4: NAME, 6: NAME.replace(" ", "")}.items():
        font["name"].setName(name, name_id, 3, 1, 0x409)
    font.flavor = options.flavor
    return font


def even_widths(font: TTFont) -> None:
    """Make all sizes of a root as wide as the smallest, and drop the widest fences.

    Before layout a browser has to say how wide a formula is and takes the widest size
    of every sign that may grow (MathML Core, "preferred inline size").  In this font a
    tall root is half as wide again as a small one, which leaves a hole of 0.4 em after
    each root in a line, and bars of fractions that are too long.
    """
    variants = font["MATH"].table.MathVariants
    root = font.getBestCmap()[ord("√")]
    for name, construction in zip(
        variants.VertGlyphCoverage.glyphs, variants.VertGlyphConstruction, strict=True
    ):
        if construction.GlyphAssembly is None:
            continue
        sizes = construction.MathGlyphVariantRecord[:MOST_SIZES]
        construction.MathGlyphVariantRecord = sizes
        construction.VariantCount = len(sizes)
        if name == root:
            parts = [part.glyph for part in construction.GlyphAssembly.PartRecords]
            for glyph in {size.VariantGlyph for size in sizes}.union(parts):
                set_width(font, glyph, font["hmtx"][root][0])


def set_width(font: TTFont, name: str, width: int) -> None:
    """Squeeze a glyph, which must have an outline of its own, to a width."""
    glyph, (old, _) = font["glyf"][name], font["hmtx"][name]
    glyph.coordinates.scale((width / old, 1.0))
    glyph.coordinates.toInt()
    glyph.recalcBounds(font["glyf"])
    font["hmtx"][name] = (width, glyph.xMin)


def lower_primes(font: TTFont) -> None:
    """Give primes the form that a superscript needs, as `ssty` would."""
    glyphs = font.getBestCmap()
    lowered = {ord(prime): f"{glyphs[ord(prime)]}.ssty" for prime in PRIMES}
    for table in font["cmap"].tables:
        table.cmap.update(lowered)


def main() -> None:
    """Write the font."""
    parser = argparse.ArgumentParser(description="Make math.woff2.")
    parser.add_argument("source", type=Path, help="path of STIXTwoMath-Regular.ttf")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).with_name("math.woff2")
    )
    arguments = parser.parse_args()
    make_font(arguments.source).save(arguments.output)


if __name__ == "__main__":
    main()
