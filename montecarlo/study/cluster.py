"""Workers of a Dask cluster that is running somewhere.

Imported only where it is asked for: it needs the extra ``[cluster]``.
"""

import logging
from concurrent.futures import Executor

from distributed import Client, Security

from montecarlo.errors import UnfinishedError
from montecarlo.study.fingerprint import fingerprint

#: Seconds that a scheduler has to answer, and to have a worker.
PATIENCE = 10


class _Pool(Executor):
    """The workers of a client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # not pure: a result that the scheduler remembers would hide that work is redone
        self._pool = client.get_executor(pure=False)
        self.submit = self._pool.submit  # type: ignore[method-assign]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of Executor
        """Close the connection; the cluster stays."""
        if self._client.status != "closed":
            self._pool.shutdown(wait=wait and not cancel_futures)
        self._client.close()


def connect(address: str) -> tuple[Executor, int]:
    """Connect to a running scheduler, with the certificates of Dask's configuration.

    Returns
    -------
    Executor, int
        The cluster, and how many tasks it works on at once.

    Raises
    ------
    UnfinishedError
        If it does not answer, has no workers, or one that would give other bytes.
    """
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a line of ours says it
    try:
        security = Security()
        _require_certificates(address, security)
        client = Client(
            address, timeout=PATIENCE, security=security, set_as_default=False
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise UnfinishedError(
            "scheduler must be the address of a running Dask scheduler, got "
            f"{address!r}: {error}"
        ) from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        require_alike(client.run(fingerprint))
        return _Pool(client), sum(client.nthreads().values())
    except (OSError, ImportError) as error:
        client.close()
        raise UnfinishedError(
            f"scheduler {address!r} must have workers with montecarlo, got: {error}"
        ) from error
    except BaseException:
        client.close()
        raise


def _require_certificates(address: str, security: Security) -> None:
    context = security.get_connection_args("client")["ssl_context"]
    if address.startswith("tls:") and context is None:
        raise ValueError("no certificates in Dask's configuration")


def require_alike(fingerprints: dict[str, dict[str, str]]) -> None:
    """Refuse workers, by their addresses, that would give other bytes."""
    for worker, has in sorted(fingerprints.items()):
        for name, expected in fingerprint().items():
            if has[name] != expected:
                raise UnfinishedError(
                    f"worker {worker} must have {name} {expected} for the same bytes, "
                    f"got {has[name]}"
                )
