"""What an index shows: the README with links that hold there, and where this lies.

The address is that of the repository whose workflow builds a release.  Built elsewhere
there is none: the README's links to files are plain words then.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A picture or a link whose target is a file of the repository.
LOCAL = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)]+)\)")


class IndexPage(MetadataHookInterface):
    """Adds `readme` and, where an address is known, `urls`."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what is dynamic, in place."""
        version, address = metadata["version"], None
        metadata["urls"] = {}
        if repository := os.environ.get("GITHUB_REPOSITORY"):
            address = f"{os.environ['GITHUB_SERVER_URL']}/{repository}"
            metadata["urls"] = {
                "Source": address,
                "Changelog": f"{address}/blob/v{version}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }

        def place(found: re.Match[str]) -> str:
            mark, words, file = found.groups()
            if address is None:
                return "" if mark else words
            kind = "raw" if mark else "blob"
            return f"{mark}[{words}]({address}/{kind}/v{version}/{file})"

        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": LOCAL.sub(place, text),
        }
