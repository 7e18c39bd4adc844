"""What the bytes of a replicate depend on, beside seed, point and index."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from montecarlo import attention, sampling

#: Digits of the code's hash that are shown.
SHOWN = 8
Fingerprint = dict[str, str]


@cache
def fingerprint() -> Fingerprint:
    """Return versions and the processor's kernels by name: equal ones, equal bytes."""
    return {
        "montecarlo": f"{version('montecarlo')} (code {code_digest()[:SHOWN]})",
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


def cpu_kernel() -> str:
    """Name what NumPy and BLAS chose for this processor: the bytes depend on it."""
    blas = sorted(
        str(info.get("architecture", info["internal_api"]))
        for info in threadpool_info()
        if info["user_api"] == "blas"
    )
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return f"{'+'.join(dict.fromkeys(blas))}; {found[-1] if found else 'baseline'}"
