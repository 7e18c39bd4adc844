"""Where a command spends CPU time: samples of its stacks.

Run as ``python -m studies.stacks FILE report --jobs 1 ...``: FILE gets a line of JSON
for each stack, its seconds and its calls, innermost first.  Nothing but the standard
library is imported before the command, so that its imports are seen, too.
"""

import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from threading import Event, Thread, current_thread
from types import FrameType

#: Seconds between samples, and between offers of Python to change threads.
BETWEEN, SWITCH = 2e-3, 2e-4
#: Innermost calls of threads that wait.
WAITING = {
    *("_worker", "finish", "wait", "acquire", "get", "join", "_wait_for_tstate_lock"),
}
Stack = tuple[str, ...]


def stack_of(frame: FrameType | None) -> Stack:
    """Return the calls of a thread, innermost first: module, function and language."""
    calls = []
    while frame is not None:
        name = frame.f_code.co_name
        call = f"{frame.f_globals.get('__name__', '')}:{name}"
        if name == "_render":  # of a page
            call += f":{frame.f_locals.get('code', '')}"
        calls.append(call)
        frame = frame.f_back
    return tuple(calls)


def watch(found: dict[Stack, float], done: Event) -> None:
    """Sample the stacks of the other threads, by the CPU time since the last sample."""
    mine, last = current_thread().ident, time.process_time()
    while not done.wait(BETWEEN):
        now = time.process_time()
        frames = sys._current_frames()  # noqa: SLF001 - there is no other way to them
        stacks = [stack_of(one) for thread, one in frames.items() if thread != mine]
        working = [one for one in stacks if one[0].split(":")[1] not in WAITING]
        for stack in working or [("",)]:
            found[stack] += (now - last) / max(1, len(working))
        last = now


def main() -> int:
    """Run the command and write what was seen."""
    file, *command = sys.argv[1:]
    found: defaultdict[Stack, float] = defaultdict(float)
    done = Event()
    watcher = Thread(target=watch, args=(found, done), daemon=True)
    sys.setswitchinterval(SWITCH)
    watcher.start()
    from montecarlo.__main__ import main as run  # noqa: PLC0415 - once it is watched

    status = run(command)
    done.set()
    watcher.join()
    lines = [json.dumps([seconds, *stack]) for stack, seconds in found.items()]
    Path(file).write_text("\n".join(lines), encoding="utf-8")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
