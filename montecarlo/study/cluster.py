"""Connection to a running Dask cluster; needs the extra ``[cluster]``."""

import logging

from distributed import Client, Security

from montecarlo.errors import UnfinishedError
from montecarlo.study.fingerprint import fingerprint

#: Time limit for the scheduler to answer, and for a worker to be there, in seconds.
TIMEOUT = 10


def connect(address: str) -> tuple[Client, int]:
    """Return (client of a running Dask scheduler, its number of parallel tasks).

    Certificates are those of Dask's configuration.

    Returns
    -------
    client : Client
    n_tasks : int
        Number of tasks that the cluster runs at the same time.

    Raises
    ------
    UnfinishedError
        If the scheduler does not answer, or has no workers, or `require_alike` fails.
    """
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # our message replaces it
    try:
        client = Client(
            address, timeout=TIMEOUT, security=Security(), set_as_default=False
        )
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise UnfinishedError(
            "scheduler must be the address of a running Dask scheduler, got "
            f"{address!r}: {error}"
        ) from error
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
        require_alike(client.run(fingerprint))
        return client, sum(client.nthreads().values())
    except BaseException as error:
        client.close()
        if isinstance(error, OSError | ImportError):
            raise UnfinishedError(
                f"scheduler {address!r} must have workers with montecarlo, got: {error}"
            ) from error
        raise


def require_alike(fingerprints: dict[str, dict[str, str]]) -> None:
    """Raise `UnfinishedError` if a worker has other software than this process.

    ``fingerprints`` maps the address of each worker to the `fingerprint` of its
    process: versions and CPU kernel, on which results depend to the last bit.
    """
    for worker, values in sorted(fingerprints.items()):
        for name, expected in fingerprint().items():
            if values[name] != expected:
                raise UnfinishedError(
                    f"worker {worker} must have {name} {expected} for the same bytes, "
                    f"got {values[name]}"
                )
