"""Workers that can be replaced: an executor, and how to start it again.

In: a function that starts a pool.  Out: a `concurrent.futures.Executor` like any other,
which ends at once what it was given if the block that uses it is left by an exception.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
#: Tasks that a worker of this machine is given at once, the one it works on included:
#: some, so that it never waits, and few, so that few are suspected when it dies and few
#: are finished but not yet in the journal when the run is killed.
ROOM = 3


class Pool(NamedTuple):
    """Started workers.

    Attributes
    ----------
    submit : callable
        As of `concurrent.futures.Executor`.
    close : callable
        Ends the workers; at once, if its argument is true: what runs is then lost.
        May be called again.
    jobs : int
        Tasks that they work on at the same time.
    """

    submit: Callable[..., Future[Any]]
    close: Callable[[bool], None]
    jobs: int


class Kind(NamedTuple):
    """A kind of workers, as `montecarlo.study.executors.EXECUTORS` has it.

    Attributes
    ----------
    start : callable or None
        Starts so many workers; None: of a cluster.
    room : int
        Tasks that a worker is given at once.
    most_jobs : int, optional
        How many there are at most; more are refused.
    needed : tuple of str
        Modules of the extra ``[cluster]`` that it imports.
    """

    start: Callable[[int], Pool] | None = None
    room: int = ROOM
    most_jobs: int | None = None
    needed: tuple[str, ...] = ()


class Workers(Executor):
    """Workers of one kind.

    Parameters
    ----------
    kind : str
        What they are, for the record.
    start : callable
        Starts them.
    room : int, optional
        Tasks to give them at once; by default all there are.
    """

    def __init__(
        self, kind: str, start: Callable[[], Pool], room: int | None = None
    ) -> None:
        self.kind = kind
        self.room = room
        self._start = start
        self._pool = start()

    @property
    def jobs(self) -> int:
        """Number of tasks that they work on at the same time."""
        return self._pool.jobs

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Send a task."""
        return self._pool.submit(fn, *args, **kwargs)

    def renew(self) -> None:
        """Replace all workers; what they were given is lost."""
        self.shutdown(cancel_futures=True)
        self._pool = self._start()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of Executor
        """End the workers: at once, or when all is done."""
        self._pool.close(cancel_futures or not wait)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the workers: at once, if the block was left by an exception."""
        self.shutdown(cancel_futures=kind is not None)
