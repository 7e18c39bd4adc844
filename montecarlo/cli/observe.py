"""``python -m montecarlo observe FILE [FILE ...]``: queries and keys of your own model.

Exit status: 0 no head is in a state named by ``--fail-on``, and all divide by what
``--expect`` says; 1 one is, or does not; 2 usage or input; 3 the run could not finish;
4 what ``--expect`` asks cannot be told; 70 a bug; 130 interrupted.
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
from montecarlo.names import look_up_all
from montecarlo.printing import print_lines
from montecarlo.study.console import print_table
from montecarlo.study.fingerprint import made_with
from montecarlo.study.folder import file_hash, publishing, write_json
from montecarlo.study.progress import open_bar

Item = TypeVar("Item")
#: Options that change the numbers, beside the files.
RECORDED = ("axes", "names", "causal", "expect", "rtol", "divisor")


def work(options: ObserveOptions, typed: Sequence[str]) -> int:
    """Observe the files, write a folder of results, and print what it says."""
    recorded: dict[str, Any] = {name: getattr(options, name) for name in RECORDED}
    states = {state: state for state in STATES}
    failing = look_up_all("fail-on", options.fail_on or (), states)
    require_files(options.files)  # before a folder is made for them
    with publishing(options.output, typed) as edition:
        observation, answer = observed.observe_files(
            options.files,
            config=options.config,
            track=partial(_track, quiet=options.quiet or options.json),
            **recorded,
        )
        edition.note_time("observing")
        for name, table in observed.make_tables(observation, answer).items():
            table.to_csv(edition.folder / name, index=False, lineterminator="\n")
        record = observed.record_observation(observation, answer)
        write_json(edition.folder / "observation.json", record)
        if answer.scales.heads:
            # Matplotlib takes longer than some heads
            from montecarlo.report.figures.applied_scale import draw_scales

            draw_scales(answer, edition.folder)
        edition.note_time("writing")
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
        # what stands for the bracket in JSON: a CI runner obeys it within a line
        print_lines(text.replace("##[", r"##\u005b"))
    elif not options.quiet:
        _print_heads(observation, answer, edition.written)
    if {one.state for one in observation.heads} & set(failing):
        return FAILING
    if options.expect is None and options.config is None:
        return DONE
    return {NO: FAILING, UNDETERMINED: NOT_REACHED}.get(answer.answer, DONE)


def _track(items: Sequence[Item], name: str, *, quiet: bool) -> Iterator[Item]:
    """Yield items, and show how far that is."""
    with open_bar(name, quiet=quiet) as update:
        update(total=len(items))
        for done, item in enumerate(items, start=1):
            yield item
            update(completed=done)


def _print_heads(
    observation: Observation, answer: ScaleAnswer, written: Sequence[Path]
) -> None:
    """Print the answer, a line for each head, and the files."""
    print_lines("\n".join(observed.say_scales(observation, answer)))
    headings, rows = observed.list_heads(observation, answer)
    print_table(headings, rows, right=len(headings) - 2)
    print_lines("\n".join([*observed.say_states(observation), *map(str, written)]))
