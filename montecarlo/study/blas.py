"""BLAS on one thread, so that the bytes of a product do not depend on their number."""

from threadpoolctl import threadpool_limits


def limit_blas() -> None:
    """Keep BLAS to one thread in this process from now on."""
    import numpy  # noqa: F401, ICN001 - loads BLAS, or nothing would be limited

    threadpool_limits(limits=1, user_api="blas")
