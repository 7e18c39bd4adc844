"""What the bytes of a replicate depend on, beside seed, point and index."""

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from montecarlo import attention, sampling
from montecarlo.names import PROJECT

#: Digits of the code's hash that are shown.
SHOWN = 8
#: Libraries whose versions the bytes of a result depend on.
LIBRARIES = ("numpy", "scipy", "pandas", "matplotlib", "jinja2", "babel", "math-core")
Fingerprint = dict[str, str]


@cache
def fingerprint() -> Fingerprint:
    """Return versions and the processor's kernels by name: equal ones, equal bytes."""
    return {
        "montecarlo": f"{version(PROJECT)} (code {code_digest()[:SHOWN]})",
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "kernel": cpu_kernel(),
    }


def code_digest() -> str:
    """Return a hash of the code that draws and of what it is made of."""
    found = hashlib.sha256()
    for package in (attention, sampling):
        for path in sorted(Path(package.__path__[0]).glob("*.py")):
            found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def made_with() -> dict[str, str | dict[str, str]]:
    """Return what a file's bytes may depend on: versions, and the processor's kernels.

    With the keys ``versions`` and ``kernel``, as records have them.
    """
    versions = {"montecarlo": version(PROJECT), "python": platform.python_version()}
    versions |= {name: version(name) for name in LIBRARIES}
    return {"versions": versions, "kernel": cpu_kernel()}


def cpu_kernel() -> str:
    """Name what NumPy and BLAS chose for this processor: the bytes depend on it."""
    blas = sorted(
        str(info.get("architecture", info["internal_api"]))
        for info in threadpool_info()
        if info["user_api"] == "blas"
    )
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return f"{'+'.join(dict.fromkeys(blas))}; {found[-1] if found else 'baseline'}"
