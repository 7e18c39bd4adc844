"""What works without capture works within it, to the bit: recorded, or passed by."""

import copy

import pytest

from montecarlo import capture
from tests.model.architectures import build, record, torch

# warnings of torch, of what it is about to change, are ignored
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

torch.set_num_threads(1)
functional = torch.nn.functional

WIDTH, HEADS, TOKENS, SEQUENCES = 32, 4, 12, 3


class Attention(torch.nn.Module):
    """Attention of torch's own, or written out."""

    def __init__(self, *, is_fused=True):
        super().__init__()
        self.is_fused = is_fused
        self.q_proj, self.k_proj, self.v_proj = (
            torch.nn.Linear(WIDTH, WIDTH) for _ in range(3)
        )

    def forward(self, x):
        """Attend."""
        projected = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        split = (one.unflatten(-1, (HEADS, -1)) for one in projected)
        q, k, v = (one.transpose(-3, -2) for one in split)
        if self.is_fused:
            made = functional.scaled_dot_product_attention(q, k, v)
        else:
            made = (q @ k.mT / (WIDTH // HEADS) ** 0.5).softmax(-1) @ v
        return made.transpose(-3, -2).flatten(-2)


def x_of():
    """Return inputs, the same each time."""
    return torch.randn(SEQUENCES, TOKENS, WIDTH, generator=torch.manual_seed(1))


def per_sample(model, x):
    """Return gradients of each sequence."""
    parameters = {name: one.detach() for name, one in model.named_parameters()}

    def loss(given, one):
        made = torch.func.functional_call(model, (given,), (one[None],))
        return made.square().sum()

    gradients = torch.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    return torch.cat([one.flatten() for one in gradients.values()])


def faked(model, x):
    """Run on tensors without entries."""
    from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: PLC0415

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        shape = tuple(model(mode.from_tensor(x)).shape)
    return torch.tensor(shape)


def nested(layout):
    """Return what runs on sequences of two lengths."""

    def run(_, x):
        given = [x[:2, :10].transpose(0, 1), x[:2].transpose(0, 1)]
        made = torch.nested.nested_tensor(
            [one.reshape(len(one), HEADS, -1) for one in given], layout=layout
        ).transpose(1, 2)
        made = made.contiguous() if layout is torch.strided else made
        made = functional.scaled_dot_product_attention(made, made, made)
        return torch.cat([one.flatten() for one in made.unbind()])

    return run


def checkpointed(model, x):
    """Compute once more for gradients."""
    from torch.utils.checkpoint import checkpoint  # noqa: PLC0415

    x = x.clone().requires_grad_()
    checkpoint(model, x, use_reentrant=False).sum().backward()
    return x.grad


#: What runs, and whether attention in it is recorded, passed by, or either.
ATTENTION = {
    "vmap": (lambda m, x: torch.vmap(m)(x), None),
    "jacrev": (lambda m, x: torch.func.jacrev(lambda y: m(y).sum(0))(x[0]), True),
    "per sample": (per_sample, None),
    "meta": (lambda m, x: torch.tensor(m.to("meta")(x.to("meta")).shape), False),
    "fake": (faked, False),
    "export": (lambda m, x: torch.export.export(m, (x,)).module()(x), None),
    "compile": (lambda m, x: torch.compile(m, backend="eager")(x), True),
    "checkpoint": (checkpointed, True),
    "autocast": (lambda m, x: torch.autocast("cpu")(m)(x), True),
    "inference": (lambda m, x: torch.inference_mode()(m)(x).clone(), True),
}


def check(run, model, *, is_recorded, with_model=True):
    """Run without and within capture; what is recorded, or a line of what is not."""
    torch.manual_seed(5)
    before = run(copy.deepcopy(model), x_of())
    drawn = torch.rand(1)
    torch.manual_seed(5)
    other = copy.deepcopy(model)
    with capture(other if with_model else None) as captured:
        made = run(other, x_of())
    assert torch.equal(before, made)
    assert torch.equal(drawn, torch.rand(1))  # nothing else was drawn
    assert not any(one._forward_hooks for one in other.modules())
    assert not other._forward_pre_hooks
    assert torch.backends.mha.get_fastpath_enabled()
    if is_recorded is not None:
        assert bool(captured._passes) is is_recorded
    assert captured._passes or captured.missed
    assert all("\n" not in one for one in captured.missed)


@pytest.mark.parametrize("is_fused", [True, False])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_under_what_torch_makes_of_it(name, is_fused):
    """Outputs are the same to the bit, with the model given to capture or not."""
    torch.manual_seed(0)
    model = Attention(is_fused=is_fused)
    run, is_recorded = ATTENTION[name]
    for with_model in (True, False):
        check(run, model, is_recorded=is_recorded, with_model=with_model)


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_sequences_of_other_lengths(layout):
    """Nested tensors of both layouts, and what makes them within."""
    check(nested(layout), Attention(), is_recorded=False, with_model=False)


def test_flex_attention_of_transformers_is_recorded():
    """With masks of blocks, which are no tensors; uncompiled, as it is captured."""
    model, inputs = build("llama", "flex_attention")
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        before = model(**inputs).last_hidden_state
        captured, made = record(model, inputs)
    assert torch.equal(before, made)
    assert captured.missed == ()
    frame = captured.applied_scale()
    assert frame["implied_divisor"].to_numpy() == pytest.approx(4.0, rel=1e-4)
    assert set(frame["mask"]) == {"causal"}


def linear(x):
    """Attend without softmax: keys meet values first."""
    q, k = functional.elu(x) + 1, functional.elu(x.flip(1)) + 1
    return q @ (k.mT @ x) / (q * k.sum(1, keepdim=True)).sum(-1, keepdim=True)


def in_place(x):
    """Write weights into scores, and scores into queries."""
    scores = x @ x.mT
    scores.sub_(scores.amax(-1, keepdim=True)).exp_()
    scores.div_(scores.sum(-1, keepdim=True))
    made = scores @ x
    x.copy_(made)
    return x


#: Programs that capture does not understand, or that are no attention.
PROGRAMS = {
    "linear attention": linear,
    "in place": in_place,
    "complex": lambda x: torch.view_as_real(torch.fft.fft(x) @ torch.fft.fft(x).mT),
    "whole numbers": lambda x: (10 * x).long() @ (10 * x).long().mT,
    "both axes": lambda x: (x @ x.mT).flatten(1).softmax(-1).unflatten(1, (12, 12)) @ x,
    "sorted": lambda x: (x @ x.mT).softmax(-1).sort(-1).values @ x,
    "chosen": lambda x: (x @ x.mT).topk(3).values.softmax(-1) @ x[:, :3],
    "shapes by entries": lambda x: x[x > 0].unique() @ x[x > 0].unique()[:, None],
    "no entries": lambda x: (x[:, :0] @ x.mT).softmax(-1) @ x,
    "one key": lambda x: (x @ x[:, :1].mT).softmax(-1) @ x[:, :1],
    "einsum of three": lambda x: torch.einsum("bqd,bkd,bke->bqe", x, x, x.softmax(-1)),
    "strided": lambda x: (
        torch.as_strided(x @ x.mT, (3, 12, 6), (144, 12, 2)).softmax(-1) @ x[:, ::2]
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_are_not_understood(name):
    """They give what they gave, to the bit."""
    run = PROGRAMS[name]
    torch.manual_seed(5)
    before = run(x_of())
    for with_model in (None, torch.nn.Identity()):
        torch.manual_seed(5)
        with capture(with_model):
            made = run(x_of())
        assert torch.equal(before, made)


def test_what_recording_does_not_expect_is_a_line():
    """Whatever it raises: nothing of it reaches the program."""
    from montecarlo.model import torch_calls  # noqa: PLC0415

    def broken(*_):
        raise KeyError("a bug\nof ours")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_calls, "_added_by", broken)
        check(lambda m, x: m(x), Attention(), is_recorded=False)
        with capture() as captured:
            Attention()(x_of())
    (line,) = captured.missed
    assert "_scaled_dot_product" in line
    assert "which could not be recorded: KeyError" in line
