"""What the bytes of a replicate depend on, beside seed, condition and index."""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

PACKAGE = Path(__file__).parents[1]
#: The part of the package that draws and reduces.
CODE = ("attention", "sampling")
Fingerprint = dict[str, str]


@cache
def fingerprint() -> Fingerprint:
    """Return versions and the processor's kernels by name: equal ones, equal bytes."""
    return {
        "montecarlo": f"{version('montecarlo')} (code {code_hash()})",
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "kernel": cpu_kernel(),
    }


def code_hash(package: Path = PACKAGE) -> str:
    """Return a short hash of the code that draws: a version may have several."""
    digest = hashlib.sha256()
    for folder in CODE:
        for path in sorted((package / folder).rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def cpu_kernel() -> str:
    """Name what NumPy and BLAS chose for this processor: the bytes depend on it."""
    blas = sorted(
        str(info.get("architecture", info["internal_api"]))
        for info in threadpool_info()
        if info["user_api"] == "blas"
    )
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return f"{'+'.join(dict.fromkeys(blas))}; {found[-1] if found else 'baseline'}"
