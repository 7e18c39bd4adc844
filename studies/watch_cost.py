"""What `ScoreWatch` costs in time and memory, beside training without it.

Run as ``python -m studies.watch_cost [--runs N]``, with the extra ``torch``: a model of
12 layers on one core, steps with and without a look in turn.  Out: a few lines.
"""

import resource
import statistics
import time
import warnings
from collections.abc import Sequence

from montecarlo.model.watch import EVERY, ScoreWarning, ScoreWatch
from studies.program import parse, require_extra, run_program

if __name__ == "__main__":  # else an importer is told by Python
    require_extra("watch_cost", "torch", "torch", "transformers")

import torch
from transformers import GPT2Config, GPT2LMHeadModel

LAYERS, HEADS, WIDTH, WORDS, BATCH, TOKENS = 12, 12, 192, 1000, 8, 128
RUNS = 10


def seconds_of_step(
    model: torch.nn.Module, optimiser: torch.optim.Optimizer, ids: torch.Tensor
) -> float:
    """Train a step; returns its CPU time."""
    start = time.process_time()
    loss = model(input_ids=ids, labels=ids).loss
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return time.process_time() - start


def peak() -> int:
    """Return the most memory that this process ever held, in KiB on Linux."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(runs: int) -> dict[str, float]:
    """Return ratios: of a step with a look to one without, and of peaks of memory."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "vocab_size": WORDS}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    model = GPT2LMHeadModel(GPT2Config(**sizes, **ends)).train()
    optimiser = torch.optim.AdamW(model.parameters())
    ids = torch.randint(WORDS, (BATCH, TOKENS))
    watch = ScoreWatch(model, every=2)
    watch(1)
    for _ in range(3):  # what is made once, such as the optimiser's memory
        seconds_of_step(model, optimiser, ids)
    before = peak()
    times: tuple[list[float], list[float]] = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScoreWarning)
        for _ in range(runs):
            for step in (0, 1):  # with a look, and without
                watch(step)
                times[step].append(seconds_of_step(model, optimiser, ids))
    ratio = statistics.median(times[0]) / statistics.median(times[1])
    return {
        "seconds_of_a_step": statistics.median(times[1]),
        "step_with_a_look": ratio,
        f"training_with_a_look_every_{EVERY}": 1.0 + (ratio - 1.0) / EVERY,
        "peak_of_memory": peak() / before,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parse("watch_cost", __doc__, argv, runs=RUNS)
    for name, value in measure(options.runs).items():
        print(f"{name} {value:.4g}")
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("watch_cost", main))
