"""How often `ScoreWatch` warns of runs that train well, and how early of others.

Run as ``python -m studies.watch_alarms [--runs N] [--jobs N]``, with the extra
``torch``.  Small transformers learn a text, or to copy; each has a seed of its own for
its weights and its batches.  In a planted run queries and keys grow, or the learning
rate is thirty times as large.  Out: ``studies/watch_alarms.csv``, a row per task and
plant, written anew after each.
"""

import math
import multiprocessing
import statistics
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass

from montecarlo.model.watch import ScoreWarning, ScoreWatch
from studies.program import HERE, ROOT, parse, require_extra, run_program, write_table

if __name__ == "__main__":  # else an importer is told by Python
    require_extra("watch_alarms", "torch", "torch")

import torch
from torch import Tensor, nn
from torch.nn import functional

TABLE = HERE / "watch_alarms.csv"
TEXT = ROOT / "examples" / "text.txt"
RUNS, STEPS, EVERY = 200, 1000, 50
#: Models that are trained beside each other, none of which sees another.
BESIDE = 25
TOKENS, BATCH, WIDTH, HEADS, LAYERS = 32, 4, 32, 2, 2
#: Words that are copied.
WORDS = 24
#: The learning rate, and the steps over which it rises to it.
RATE, WARM_UP = 2e-3, 50
#: From which step on queries and keys grow, each by so much a step, and how many times
#: the rate is too large.
FROM, BY, TIMES = 300, 1.01, 30.0
#: The loss rises where the mean of so many steps lies so far, in nats, above the
#: smallest one before.
MEAN_OF, RISE = 50, 0.25
TASKS = ("text", "copy")
#: What is planted, and how it is said.
PLANTS = {
    "none": "nothing",
    "growth": "queries and keys grow by 1 % a step from step 300 on",
    "rate": "a learning rate thirty times as large",
}
KINDS = ("growing", "hot", "frozen")
#: Of planted runs: those whose loss rose, of these those that were not warned of
#: before, and by how many steps the others were, at the median and at least.
LEADS = ("loss_rose", "rose_unwarned", "lead", "least_lead")


class Transformers(nn.Module):  # type: ignore[misc]
    """Language models of two blocks, beside each other: tokens (batch, model, token).

    Heads of all models are heads of one call of attention, so that one watch sees them.
    """

    def __init__(self, seeds: Sequence[int], words: int) -> None:
        super().__init__()
        shapes = {"words": (words, WIDTH), "places": (TOKENS, WIDTH)}
        for n in range(LAYERS):
            shapes |= {f"qkv{n}": (WIDTH, 3 * WIDTH), f"joined{n}": (WIDTH, WIDTH)}
            shapes |= {f"up{n}": (WIDTH, 4 * WIDTH), f"down{n}": (4 * WIDTH, WIDTH)}
        shapes["next"] = (WIDTH, words)
        draws = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.maps = nn.ParameterDict()
        for name, shape in shapes.items():
            size = 1.0 if name in {"words", "places"} else shape[0] ** -0.5
            drawn = [torch.randn(shape, generator=one) * size for one in draws]
            self.maps[name] = nn.Parameter(torch.stack(drawn))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits of the next tokens, (batch, model, token, word)."""
        models = torch.arange(tokens.shape[1])[:, None]
        x = self.maps["words"][models, tokens] + self.maps["places"]
        for n in range(LAYERS):
            x = x + self._attend(n, x)
            x = x + self._map(f"down{n}", functional.gelu(self._map(f"up{n}", x)))
        return self._map("next", x)

    def _map(self, name: str, x: Tensor) -> Tensor:
        if name.startswith(("qkv", "up", "next")):
            x = functional.layer_norm(x, x.shape[-1:])
        return torch.einsum("bmti,mio->bmto", x, self.maps[name])

    def _attend(self, n: int, x: Tensor) -> Tensor:
        batch, models, tokens, _ = x.shape
        parts = self._map(f"qkv{n}", x).view(batch, models, tokens, 3, HEADS, -1)
        q, k, v = parts.permute(3, 0, 1, 4, 2, 5).flatten(2, 3)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = mixed.unflatten(1, (models, HEADS)).transpose(2, 3).flatten(3)
        return self._map(f"joined{n}", mixed)


@dataclass(frozen=True, slots=True)
class Runs:
    """What became of models that were trained beside each other.

    Attributes
    ----------
    alarms : list of dict
        Of each model: kind of warning to the step of the first.
    rises : list of int or None
        The step at which its loss had risen.
    losses : list of float
        The mean over the last steps.
    """

    alarms: list[dict[str, int]]
    rises: list[int | None]
    losses: list[float]


def draw_batches(task: str, seeds: Sequence[int]) -> tuple[int, Iterator[Tensor]]:
    """Return the number of words, and batches of one token more than the models see."""
    draws = [torch.Generator().manual_seed(-1 - seed) for seed in seeds]
    text = TEXT.read_text(encoding="utf-8").lower()
    letters = sorted(set(text))
    coded = torch.tensor([letters.index(letter) for letter in text])

    def draw(one: torch.Generator) -> Tensor:
        if task == "copy":
            half = torch.randint(WORDS, (BATCH, TOKENS // 2), generator=one)
            return torch.cat([half, half, half[:, :1]], 1)
        starts = torch.randint(len(coded) - TOKENS, (BATCH, 1), generator=one)
        return coded[starts + torch.arange(TOKENS + 1)]

    def batches() -> Iterator[Tensor]:
        while True:
            yield torch.stack([draw(one) for one in draws], 1)

    return (WORDS if task == "copy" else len(letters)), batches()


def train(
    task: str, plant: str, seeds: Sequence[int], steps: int = STEPS, every: int = EVERY
) -> Runs:
    """Train models and watch them."""
    torch.set_num_threads(1)
    words, batches = draw_batches(task, seeds)
    models = Transformers(seeds, words)
    rate = RATE * (TIMES if plant == "rate" else 1.0)
    optimiser = torch.optim.AdamW(models.parameters(), rate)
    losses = []
    with ScoreWatch(models, every=every) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ScoreWarning)
        for step, tokens in zip(range(steps), batches, strict=False):
            optimiser.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / WARM_UP)
            logits = models(tokens[..., :-1]).permute(0, 3, 1, 2)
            loss = functional.cross_entropy(logits, tokens[..., 1:], reduction="none")
            each = loss.mean(dim=(0, 2))
            optimiser.zero_grad()
            each.sum().backward()
            optimiser.step()
            losses.append(each.tolist())
            if plant == "growth" and step >= FROM:
                with torch.no_grad():
                    for n in range(LAYERS):
                        models.maps[f"qkv{n}"][..., : 2 * WIDTH] *= BY
    alarms: list[dict[str, int]] = [{} for _ in seeds]
    for alarm in watch.alarms:
        for head in alarm.heads:
            alarms[head // HEADS].setdefault(alarm.kind, alarm.step)
    of_models = list(zip(*losses, strict=True))
    lasts = [statistics.fmean(one[-MEAN_OF:]) for one in of_models]
    return Runs(alarms, [find_rise(one) for one in of_models], lasts)


def find_rise(losses: Sequence[float]) -> int | None:
    """Return the step at which a loss had risen; None where it never had."""
    least = math.inf
    for end in range(MEAN_OF, len(losses) + 1):
        mean = statistics.fmean(losses[end - MEAN_OF : end])
        if not mean <= least + RISE:  # nor is a NaN
            return end - 1
        least = min(least, mean)
    return None


def measure(runs: int, executor: Executor) -> Iterator[dict[str, object]]:
    """Yield the lines of the table; of planted runs an eighth as many are enough."""
    for plant in PLANTS:
        many = runs if plant == "none" else -(-runs // 8)
        for task in TASKS:
            futures = [
                executor.submit(
                    train, task, plant, range(first, min(first + BESIDE, many))
                )
                for first in range(0, many, BESIDE)
            ]
            yield line(task, plant, [future.result() for future in futures])


def line(task: str, plant: str, parts: Sequence[Runs]) -> dict[str, object]:
    """Return one line of the table: numbers of runs, and medians of steps."""
    alarms = [one for part in parts for one in part.alarms]
    rises = [one for part in parts for one in part.rises]
    losses = [one for part in parts for one in part.losses]
    firsts = [min(one.values(), default=None) for one in alarms]
    told = [first for first in firsts if first is not None]
    return {
        "task": task,
        "plant": plant,
        "runs": len(alarms),
        **{f"warned_{kind}": sum(kind in one for one in alarms) for kind in KINDS},
        "warned": len(told),
        "first_warning": statistics.median(told) if told else "",
        **(_leads(rises, firsts) if plant != "none" else dict.fromkeys(LEADS, "")),
        "last_loss": round(statistics.median(losses), 3),
    }


def _leads(
    rises: Sequence[int | None], firsts: Sequence[int | None]
) -> dict[str, object]:
    """Return how many steps the first warning comes before the loss rises."""
    risen = [pair for pair in zip(rises, firsts, strict=True) if pair[0] is not None]
    leads = [rise - first for rise, first in risen if rise and first is not None]
    values = (
        len(risen),
        len(risen) - sum(lead >= 0 for lead in leads),
        statistics.median(leads) if leads else "",
        min(leads, default=""),
    )
    return dict(zip(LEADS, values, strict=True))


def main(argv: Sequence[str] | None = None) -> int:
    """Train, write the table and print it."""
    options = parse("watch_alarms", __doc__, argv, runs=RUNS, jobs=1, output=TABLE)
    lines: list[dict[str, object]] = []
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn) as executor:
        for new in measure(options.runs, executor):
            lines.append(new)
            write_table(options.output, lines)
            print(*new.values(), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(run_program("watch_alarms", main))
