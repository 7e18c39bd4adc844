"""What an index shows of a release: a README without a link that is dead there."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ADDRESS = "https://example.org/someone/montecarlo"


@pytest.fixture
def told():
    """What the hook of the build adds, as it is called by hatchling."""
    spec = importlib.util.spec_from_file_location("build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def tell():
        metadata = {"version": "1.2"}
        module.IndexPage(str(ROOT), {}).update(metadata)
        links = re.findall(r"\]\(([^)]*)\)", metadata["readme"]["text"])
        return metadata, links

    return tell


def test_a_release_links_to_its_own_files(told, monkeypatch):
    """Of the repository that builds it, at its tag, where they are."""
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "someone/montecarlo")
    metadata, links = told()
    assert metadata["urls"]["Source"] == ADDRESS
    assert f"{ADDRESS}/raw/v1.2/docs/attention.svg" in links
    files = [link.split("/v1.2/")[1] for link in links if link.startswith(ADDRESS)]
    assert len(files) == len(links) > 10
    assert all((ROOT / file.partition("#")[0]).is_file() for file in files)
