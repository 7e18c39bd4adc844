"""Versions of the software, and CPU kernels, on which the bytes of results depend."""

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from montecarlo import attention, sampling
from montecarlo.names import PROJECT

#: Libraries on whose versions the bytes of a results folder depend.
LIBRARIES = ("numpy", "scipy", "pandas", "matplotlib", "jinja2", "babel", "math-core")


@cache
def fingerprint() -> dict[str, str]:
    """Return the versions and the CPU kernel that determine a replicate's last bits.

    The keys are ``montecarlo``, ``numpy`` and ``scipy`` (versions) and ``kernel``.
    Apart from these, a replicate depends only on seed, design point and index.
    """
    return {
        "montecarlo": f"{version(PROJECT)} (code {code_digest()[:8]})",
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "kernel": cpu_kernel(),
    }


def code_digest() -> str:
    """Return the SHA-256 of the source files of `sampling` and `attention`, in hex."""
    digest = hashlib.sha256()
    for package in (attention, sampling):
        for path in sorted(Path(package.__path__[0]).glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def made_with() -> dict[str, str | dict[str, str]]:
    """Return the versions of software and the CPU kernel that results are made with.

    They are the entries ``versions`` and ``kernel`` of run.json and of records.  The
    versions are those of Python, this package and `LIBRARIES`.
    """
    versions = {"montecarlo": version(PROJECT), "python": platform.python_version()}
    versions |= {name: version(name) for name in LIBRARIES}
    return {"versions": versions, "kernel": cpu_kernel()}


def cpu_kernel() -> str:
    """Return the names of the CPU kernels that BLAS and NumPy use on this processor.

    Such as ``SkylakeX; AVX512_ICL``.  Results of different kernels differ by rounding.
    """
    blas = sorted(
        str(info.get("architecture", info["internal_api"]))
        for info in threadpool_info()
        if info["user_api"] == "blas"
    )
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return f"{'+'.join(dict.fromkeys(blas))}; {simd[-1] if simd else 'baseline'}"
