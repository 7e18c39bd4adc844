"""The style of pages and the policy that lets it through: no request, no other code."""

import base64
import hashlib

from montecarlo.report.language.catalogues import read_template, template_folder

#: The one place where the policy of the pages is written: no request, and of styles
#: and scripts the page's own, by their hashes.
POLICY = (
    "default-src 'none'; img-src data:; font-src data:; style-src '{style}'; "
    "script-src {script}; base-uri 'none'; form-action 'none'"
)


def stylesheet() -> str:
    """Return the style of every page, with the font for formulas inside."""
    font = template_folder().joinpath("fonts", "math.woff2").read_bytes()
    style = read_template("report.css")
    return style.replace("MATH_FONT", base64.b64encode(font).decode())


def policy(style: str, script: str) -> str:
    """Return the policy of a page: its own style, its own script if it has one."""
    allowed = f"'{source_hash(script)}'" if script else "'none'"
    return POLICY.format(style=source_hash(style), script=allowed)


def source_hash(source: str) -> str:
    """Return the source expression that allows exactly this style or script."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
