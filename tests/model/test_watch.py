"""The watch over real torch and transformers: a few steps of small models.

Slow, and only where both are installed; a part of the stage of capture.
"""

import copy
import gc
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from montecarlo import ScoreWatch, capture
from montecarlo.errors import InputError
from montecarlo.model.watch import FROZEN, GROWN, GROWTH, HOT, LOOKS, ScoreWarning
from tests.model import architectures
from tests.model.needed import need_torch

pytestmark = pytest.mark.slow

torch, transformers = need_torch()
scaled_dot_product_attention = torch.nn.functional.scaled_dot_product_attention

LAYERS, HEADS, WIDTH, WORDS, TOKENS = 2, 4, 32, 50, 24


def build(implementation="sdpa", dropout=0.0):
    """Build a model that trains, and a batch for it."""
    torch.manual_seed(1)
    sizes = {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "vocab_size": WORDS}
    drops = dict.fromkeys(("attn_pdrop", "resid_pdrop", "embd_pdrop"), dropout)
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    configuration = transformers.GPT2Config(**sizes, **drops, **ends)
    model = transformers.GPT2LMHeadModel(configuration).train()
    model.set_attn_implementation(implementation)
    return model, torch.randint(1, WORDS, (6, TOKENS))


class Attention(torch.nn.Module):
    """One call of attention, of queries that are made as large as is wished."""

    def __init__(self, size=1.0):
        super().__init__()
        self.size = size
        generator = torch.Generator().manual_seed(2)
        self.qkv = torch.randn(3, 2, HEADS, TOKENS, 8, generator=generator)

    def forward(self):
        """Attend."""
        q, k, v = self.qkv
        return scaled_dot_product_attention(q * self.size, k, v)


def run(model, watch, sizes):
    """Run passes whose queries are of these sizes; returns what was warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with watch:
            for size in sizes:
                model.size = size
                model()
    assert all(one.category is ScoreWarning for one in caught)
    assert all(one.filename == __file__ for one in caught)  # whose loop it is
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_loop_is_watched(implementation):
    """Every third pass in training, for each layer and head; not those between, nor
    those in evaluation; and training is as it is without.
    """
    losses = []
    for is_watched in (False, True):
        model, ids = build(implementation)
        watch = ScoreWatch(model, every=3)
        optimiser = torch.optim.SGD(model.parameters(), 0.1)
        losses.append([])
        if is_watched:
            watch.__enter__()
        for _ in range(7):
            loss = model(input_ids=ids, labels=ids).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses[-1].append(loss.item())
            model.eval()
            with torch.no_grad():
                model(input_ids=ids)
            model.train()
        watch.close()
    assert losses[0] == losses[1]
    frame = watch.frame
    assert sorted(set(frame["step"])) == [0, 3, 6]
    assert len(frame) == 3 * LAYERS * HEADS
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    assert watch.alarms == []


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_look_is_the_summary_of_a_capture(implementation):
    """The same numbers as of what `capture` recorded, dropout or not."""
    model, ids = build(implementation, dropout=0.3)
    watch = ScoreWatch(model)
    torch.manual_seed(5)
    with watch:
        model(input_ids=ids)
    torch.manual_seed(5)
    with capture(model, rows=16, sequences=4) as captured:
        model(input_ids=ids)
    expected = captured.summary()
    found = watch.frame.drop(columns="step")
    assert found.to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-6)
    assert set(expected["scale"]) == {(WIDTH // HEADS) ** -0.5}


def test_eager_and_fused_attention_have_one_summary():
    """Weights that are given back, and those that are made again, padding left out."""
    found = []
    for implementation in ("eager", "sdpa"):
        model, ids = build(implementation)
        mask = torch.ones_like(ids)
        mask[1, 15:] = 0
        with torch.no_grad(), capture(model.eval(), rows=None) as captured:
            model(input_ids=ids, attention_mask=mask)
        found.append(captured.summary())
    assert found[0].to_numpy() == pytest.approx(found[1].to_numpy(), rel=1e-4)
    assert set(found[0]["rows"]) == {5 * (TOKENS - 1) + 14}


def test_a_watch_that_saw_nothing_says_what_it_waits_for():
    """Once, where it ends; not where the loop failed, or steps were told.

    Whoever tells them is believed: nothing is counted, and a look is of one pass.
    """
    model = Attention().eval()
    told = "it waits for a pass of its model in training mode, got none, and 2 in eval"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ScoreWatch(model) as watch:
            model()
            model()
    (warned,) = caught
    assert told in str(warned.message)
    assert warned.filename == __file__
    assert not watch.summaries
    with pytest.raises(ZeroDivisionError), ScoreWatch(model):
        raise ZeroDivisionError
    with ScoreWatch(model.train(), every=10) as watch:
        watch(5)
        model()
        watch(np.int64(10))
        model()
        model()
    assert [step for step, _ in watch.summaries] == [10] * HEADS


def test_a_large_score_is_warned_of_once():
    """By layer and heads, with what was found."""
    model = Attention()
    first = ScoreWatch(model)
    run(model, first, [1.0])
    unit = max(one.score_max for _, one in first.summaries)
    least = min(one.score_max for _, one in first.summaries)
    watch = ScoreWatch(model, every=1)
    told = run(model, watch, [1.0, 0.99 * HOT / unit, 1.01 * HOT / least, HOT])
    (text,) = [text for text in told if "beyond" in text]
    largest = watch.frame.query("step == 2")["score_max"].max()
    place = "step 2: layer 0, heads 0-3"
    assert text == f"{place}: largest score {largest:.4g}, beyond {HOT:g}"
    (alarm,) = [one for one in watch.alarms if one.kind == "hot"]
    assert (alarm.step, alarm.layer, alarm.heads) == (2, 0, (0, 1, 2, 3))


def test_growth_is_warned_of():
    """Where largest scores rose at every look, enough, and beyond where they begin."""
    model = Attention()
    largest = ScoreWatch(model)
    run(model, largest, [1.0])
    unit = max(one.score_max for _, one in largest.summaries)
    rising = 1.07 * GROWN / unit * np.geomspace(0.93 / GROWTH, 1.0, LOOKS)
    for sizes, count in (
        (rising, 1),
        (rising[1:], 0),  # too few looks
        (rising / 3.0, 0),  # scores are as small as they begin
        ([*rising[:-2], rising[0], rising[-1]], 0),  # up and down
        (np.sqrt(rising * rising[-1]), 0),  # less than `GROWTH` times
    ):
        watch = ScoreWatch(model, every=1, frozen=1e-9, hot=1e9)
        told = run(model, watch, sizes)
        assert len(told) == count, sizes
        if count:
            # the largest head alone ends beyond where growth is warned of
            assert f"largest score grows, {rising[0] * unit:.4g} to" in told[0]
            assert watch.alarms[0].step == LOOKS - 1


def test_a_frozen_head_is_warned_of():
    """Not before its entropy is near 0."""
    model = Attention()
    watch = ScoreWatch(model, every=1, hot=1e9, growth=1e9)
    told = run(model, watch, [1.0, 3.0, 1000.0])
    assert [text[:7] for text in told] == ["step 2:"]
    assert f"of the largest possible, below {100.0 * FROZEN:g} %" in told[0]


def test_a_trainer_is_watched(tmp_path):
    """Transformers' own, accumulating gradients; extremes of a layer are handed on."""
    pytest.importorskip("accelerate")
    from montecarlo.model.trainer_callback import ScoreWatchCallback  # noqa: PLC0415

    model, ids = build()
    examples = [{"input_ids": one, "labels": one} for one in ids.repeat(4, 1)]
    handed = []
    told = ScoreWatchCallback(every=2, writer=lambda *one: handed.append(one))
    options = {"max_steps": 5, "report_to": [], "save_strategy": "no", "use_cpu": True}
    options |= {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    arguments = transformers.TrainingArguments(
        str(tmp_path), disable_tqdm=True, dataloader_pin_memory=False, **options
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=examples)
    trainer.add_callback(told)
    trainer.train()
    frame = told.watch.frame
    assert list(frame["step"].unique()) == [0, 2, 4]
    assert len(handed) == 3 * LAYERS * 4
    assert not model._forward_hooks
    of_one = frame[frame["step"].eq(2) & frame["layer"].eq(1)]
    given = {name: value for name, value, step in handed if step == 2}
    for name in ("score_max", "weight_max", "saturated_rows"):
        assert given[f"attention/layer 1/{name}"] == of_one[name].max()
    assert given["attention/layer 1/entropy_share"] == of_one["entropy_share"].min()


def test_a_compiled_model_is_watched():
    """A look runs as it is written: what runs compiled is not seen."""
    model = Attention()
    compiled = torch.compile(model, backend="eager")
    with ScoreWatch(compiled, every=2) as watch:
        made = [compiled() for _ in range(4)]
    assert list(watch.frame["step"].unique()) == [0, 2]
    assert all(torch.allclose(one, made[0]) for one in made)


class OneKey(torch.nn.Module):
    """Attention to one key alone."""

    def forward(self, x):
        """Attend."""
        x = x.expand(2, 3, 1, 2)
        return scaled_dot_product_attention(x, x, x)


@pytest.mark.parametrize("model", [torch.nn.Linear(2, 2), OneKey()])
def test_a_model_whose_attention_is_not_seen_goes_on(model):
    """Without attention, or with a single key: one warning, and no error in a step."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ScoreWatch(model, every=1) as watch:
            for _ in range(3):
                model(torch.zeros(2))
    (warned,) = caught
    assert warned.category is ScoreWarning
    assert "no attention with several keys was followed" in str(warned.message)
    assert warned.filename == __file__
    assert watch.summaries == []


class SomeKeys(Attention):
    """Attention to all keys, to one, and to all again; fused, and written out."""

    def forward(self):
        """Attend."""
        q, k, v = self.qkv
        for n in (TOKENS, 1, TOKENS):
            scaled_dot_product_attention(q, k[:, :, :n], v[:, :, :n])
            (q @ k[:, :, :n].mT).softmax(-1) @ v[:, :, :n]


def test_layers_of_a_single_key_are_numbered():
    """In a watch as in a capture; nothing is said of them."""
    model = SomeKeys()
    with ScoreWatch(model) as watch:
        model()
    with capture(model) as captured:
        model()
    for frame in (watch.frame, captured.summary(), captured.passed):
        assert list(frame["layer"].unique()) == [0, 1, 4, 5]


def is_free(model):
    """Whether nothing of a watch or a capture is left."""
    hooks = [hook for one in model.modules() for hook in one._forward_hooks.values()]
    modes = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    return not (hooks or model._forward_pre_hooks or model._compiled_call_impl or modes)


def pickled(model):
    """Return what a model is read back as."""
    return pickle.loads(pickle.dumps(model))  # noqa: S301 - our own


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_a_watched_model_can_be_copied_and_saved(copied):
    """Although a writer holds a lock; the copy is not watched."""
    lock = threading.Lock()

    def writer(*_):
        with lock:
            pass

    model, ids = build()
    watch = ScoreWatch(model, every=1, writer=writer)
    watch(0)
    other = copied(model)
    assert is_free(other)
    assert torch.equal(other(ids).logits, model(ids).logits)
    assert len(watch.summaries) == LAYERS * HEADS
    watch.close()
    assert is_free(model)
    compiled = torch.compile(Attention(), backend="eager")
    with ScoreWatch(compiled, every=1) as watch:
        assert is_free(copy.deepcopy(compiled))
        compiled()


def test_a_watch_ends_with_its_object():
    """And with an interruption in a pass nothing of it is left on torch's stack."""
    model = Attention()
    watch = ScoreWatch(model)
    watch(0)
    model()
    del watch
    gc.collect()
    assert is_free(model)

    class Failing(Attention):
        def forward(self):
            super().forward()
            raise KeyboardInterrupt

    model = Failing()
    watch = ScoreWatch(model)
    watch(0)
    with pytest.raises(KeyboardInterrupt):
        model()
    assert watch.summaries == []
    watch.close()
    assert is_free(model)


def test_a_watch_leaves_what_took_its_place():
    """As where a model is compiled while it is watched."""
    model = Attention()
    watch = ScoreWatch(model)
    watch(0)
    model.compile(backend="eager")
    compiled = model._compiled_call_impl
    watch.close()
    assert model._compiled_call_impl is compiled


def test_watches_of_several_threads():
    """Each sees its own passes; transformers and torch are as they were at the end."""
    handed_out = transformers.modeling_utils.AttentionInterface.get_interface
    made = [build() for _ in range(3)]
    watches = [ScoreWatch(model, every=1) for model, _ in made]

    def train(number):
        model, ids = made[number]
        with watches[number]:
            for _ in range(4):
                model(ids)

    with ThreadPoolExecutor(3) as executor:
        list(executor.map(train, range(3)))
    assert [len(one.summaries) for one in watches] == [4 * LAYERS * HEADS] * 3
    assert all(is_free(model) for model, _ in made)
    assert transformers.modeling_utils.AttentionInterface.get_interface is handed_out
    assert torch.backends.mha.get_fastpath_enabled()


def test_the_command_below_a_failure_expects_the_same(attention_scale):
    """Of a configuration the number: by sqrt(d_k) alone this model would pass."""
    model, inputs = architectures.build("granite")
    architectures.planted_in_modules(model, 1 / 4 / 0.15)
    with (
        pytest.raises(AssertionError, match=r"attention_multiplier.*\? no") as error,
        attention_scale(model),
        torch.no_grad(),
    ):
        model(**inputs)
    assert str(error.value).endswith("attention.npz --expect 6.66666666667")


def test_the_page_s_lines_run(attention_scale, tmp_path, monkeypatch, capsys):
    """A loop, a writer, a test of a port and one of arrays, as they stand there."""
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[2] / "docs" / "watch.md"
    text = page.read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in text.split("```python\n")[1:]]
    loop, writer, trainer, port, arrays = blocks
    names = {"attention_scale": attention_scale}
    for block in (loop, writer, port):
        exec(compile(block, page, "exec"), names)  # noqa: S102 - our own page
    names["test_port"](attention_scale)
    assert "score_max" in capsys.readouterr().out
    assert "from montecarlo.model.trainer_callback import" in trainer
    weights = np.tril(np.ones((1, 9, 9))) / np.arange(1.0, 10.0)[:, None]
    names |= dict(zip("qk", np.zeros((2, 1, 9, 4)), strict=True)) | {"w": weights}
    with pytest.raises(AssertionError, match="cannot be told"):
        exec(compile(arrays, page, "exec"), names)  # noqa: S102 - our own page


WRONG = {"every": 0, "writer": "runs", "hot": 0.0, "growth": 1.0, "frozen": 1.0}
WRONG |= {"model": "gpt2", "step": -1}


@pytest.mark.parametrize("name", WRONG)
def test_bad_options_are_refused(name):
    """By their names, before a step is trained."""
    with pytest.raises(InputError, match=r"^model must be a torch.nn.Module, got type"):
        ScoreWatch(torch.nn.Linear)
    given = {"model": torch.nn.Linear(2, 2), name: WRONG[name]}
    step = given.pop("step", 0)
    with pytest.raises(InputError, match=f"^{name} must be .*, got "):
        ScoreWatch(given.pop("model"), **given)(step)
