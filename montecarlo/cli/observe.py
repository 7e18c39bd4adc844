"""``python -m montecarlo observe FILE [FILE ...]``: queries and keys of a model.

Exit status: 0 no head is in a state named by ``--fail-on``, and all have the divisor of
``--expect``; 1 otherwise; 2 usage or input; 3 the run could not finish; 4 the divisor
cannot be determined; 70 a bug; 130 interrupted.
"""

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from montecarlo.cli.command_line import ObserveOptions
from montecarlo.cli.exits import DONE, FAILING, NOT_REACHED
from montecarlo.model import observed_files as observed
from montecarlo.model.answers import NO, UNDETERMINED, ScaleAnswer, implied_divisor
from montecarlo.model.files import require_files
from montecarlo.model.observing import STATES, Observation
from montecarlo.names import require_names
from montecarlo.printing import print_lines
from montecarlo.study.console import print_table
from montecarlo.study.fingerprint import made_with
from montecarlo.study.folder import file_hash, publishing, write_json
from montecarlo.study.progress import open_bar

Item = TypeVar("Item")
#: Options on which the results depend, besides the files.
RECORDED = ("axes", "causal", "expect", "rtol", "divisor")


def work(options: ObserveOptions, argv: Sequence[str]) -> int:
    """Observe the files, write the results, print a summary; return the exit status.

    ``argv`` are the arguments as typed, for timing.json.  The status is 1 if a head is
    in a state that ``--fail-on`` names.

    Otherwise, with ``--expect`` or a configuration, it is 1 if a head does not divide
    by the expected divisor, or if its cap, window, chunks, sinks or bias by distance
    are not as configured.  It is 4 if it cannot be told whether all divisors are as
    expected, as without weights or outputs.

    In all other cases it is 0.
    """
    recorded: dict[str, Any] = {name: getattr(options, name) for name in RECORDED}
    failing = require_names("fail-on", options.fail_on or (), STATES)
    require_files(options.files)  # before the output folder is created
    with publishing(options.output, argv) as edition:
        observation, answer = observed.observe_files(
            options.files,
            config=options.config,
            track=partial(_track, quiet=options.quiet or options.json),
            **recorded,
        )
        edition.end_part("observing")
        for name, table in observed.make_tables(observation, answer).items():
            table.to_csv(edition.folder / name, index=False, lineterminator="\n")
        record = observed.record_observation(observation, answer)
        write_json(edition.folder / "observation.json", record)
        if answer.scales.heads:
            # imports Matplotlib, which may take longer than the rest
            from montecarlo.report.figures.applied_scale import draw_scales

            draw_scales(answer, edition.folder)
        edition.end_part("writing")
        edition.record = {
            "kind": "observation",
            "options": recorded,
            "files": [
                {"name": f.name, "bytes": f.stat().st_size, "sha256": file_hash(f)}
                for f in (*options.files, *([options.config] if options.config else []))
            ],
            "divisor": options.divisor or implied_divisor(answer.scales),
            **made_with(),
        }
    if options.json:
        text = json.dumps(record["applied"], indent=2)
        # a CI runner executes commands after ##[; JSON allows to escape the bracket
        print_lines(text.replace("##[", r"##\u005b"))
    elif not options.quiet:
        _print_heads(observation, answer, edition.written)
    if {one.state for one in observation.heads} & set(failing):
        return FAILING
    if options.expect is None and options.config is None:
        return DONE
    return {NO: FAILING, UNDETERMINED: NOT_REACHED}.get(answer.answer, DONE)


def _track(items: Sequence[Item], name: str, *, quiet: bool) -> Iterator[Item]:
    """Yield the items, while a progress bar with the label ``name`` counts them.

    With ``quiet`` there is no bar.
    """
    with open_bar(name, quiet=quiet) as update:
        for done, item in enumerate(items, start=1):
            yield item
            update(total=len(items), completed=done)


def _print_heads(
    observation: Observation, answer: ScaleAnswer, written: Sequence[Path]
) -> None:
    """Print the answer, a table of at most 12 heads, and the paths of files.

    Below the table stands how many heads are in each state, such as ``saturated``, with
    a warning if there are fewer than 5 sequences.
    """
    print_lines("\n".join(observed.say_scales(observation, answer)))
    headings, rows = observed.list_heads(observation, answer)
    print_table(headings, rows, right=len(headings) - 2)
    print_lines("\n".join([*observed.say_states(observation), *map(str, written)]))
