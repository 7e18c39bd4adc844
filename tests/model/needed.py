"""What tests of capture need, which are skipped without."""

import importlib
import importlib.util
import os

import pytest


def need_torch():
    """Return torch and transformers; both must be there where that is required."""
    names = ("torch", "transformers")
    if all(importlib.util.find_spec(name) for name in names):
        return [importlib.import_module(name) for name in names]
    if os.environ.get("MONTECARLO_REQUIRE_TORCH"):
        raise ImportError("torch and transformers must be installed for these tests")
    return pytest.skip("needs torch and transformers", allow_module_level=True)
