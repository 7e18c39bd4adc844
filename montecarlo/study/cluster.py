"""Workers of a Dask cluster that is running somewhere.

Imported only where it is asked for: it needs the extra ``[cluster]``.
"""

import logging

from distributed import Client, Security

from montecarlo.errors import UnfinishedError
from montecarlo.study.fingerprint import fingerprint

#: Seconds that a scheduler has to answer, and to have a worker.
PATIENCE = 10


def connect(address: str) -> tuple[Client, int]:
    """Connect to a running scheduler, with the certificates of Dask's configuration.

    Returns
    -------
    Client, int
        Of the cluster, and how many tasks it works on at once.

    Raises
    ------
    UnfinishedError
        If it does not answer, has no workers, or one that would give other bytes.
    """
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # a line of ours says it
    try:
        client = Client(
            address, timeout=PATIENCE, security=Security(), set_as_default=False
        )
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise UnfinishedError(
            "scheduler must be the address of a running Dask scheduler, got "
            f"{address!r}: {error}"
        ) from error
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        require_alike(client.run(fingerprint))
        return client, sum(client.nthreads().values())
    except (OSError, ImportError) as error:
        client.close()
        raise UnfinishedError(
            f"scheduler {address!r} must have workers with montecarlo, got: {error}"
        ) from error
    except BaseException:
        client.close()
        raise


def require_alike(fingerprints: dict[str, dict[str, str]]) -> None:
    """Refuse workers, by their addresses, that would give other bytes."""
    for worker, has in sorted(fingerprints.items()):
        for name, expected in fingerprint().items():
            if has[name] != expected:
                raise UnfinishedError(
                    f"worker {worker} must have {name} {expected} for the same bytes, "
                    f"got {has[name]}"
                )
