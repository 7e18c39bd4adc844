"""Attention that is followed: written out in many ways, torch's modules, decoding.

Slow, and only where torch and transformers are installed, as `test_capture.py`.
"""

import math
from contextlib import nullcontext

import numpy as np
import pytest

from montecarlo import assert_attention_scale, capture, compare
from montecarlo.errors import InputError
from tests.model.architectures import build, record, torch, transformers

pytestmark = pytest.mark.slow

torch.set_num_threads(1)  # tests run beside each other
functional = torch.nn.functional

SEQUENCES, TOKENS, HEADS, D_K = 3, 40, 4, 16
WIDTH = HEADS * D_K
SCALE = D_K**-0.5
#: Which keys a token sees.
SEEN = torch.ones(TOKENS, TOKENS).tril().bool()


class Layer(torch.nn.Module):
    """Projections, and attention that is written out by a function of them."""

    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        projections = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.q, self.k, self.v, self.o = projections
        self.bias = torch.nn.Parameter(torch.randn(HEADS, TOKENS, TOKENS))
        self.drop = torch.nn.Dropout(0.2)

    def heads(self, x):
        """Split the width, heads before tokens."""
        return x.view(SEQUENCES, TOKENS, HEADS, D_K).transpose(1, 2)

    def project(self, x):
        """Return queries, keys and values in the width."""
        return self.q(x), self.k(x), self.v(x)

    def three(self, x):
        """Return queries, keys and values with heads."""
        return map(self.heads, self.project(x))

    def join(self, x):
        """Join heads."""
        return self.o(x.transpose(1, 2).flatten(2))

    def forward(self, x):
        """Attend."""
        return self.attend(self, x)


def einsum(layer, x):
    """Tokens before heads, masked_fill, dropout."""
    q, k, v = (one.view(SEQUENCES, TOKENS, HEADS, D_K) for one in layer.project(x))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(D_K)
    weights = layer.drop(scores.masked_fill(~SEEN, -math.inf).softmax(-1))
    return layer.o(torch.einsum("bhij,bjhd->bihd", weights, v).flatten(2))


def baddbmm(layer, x):
    """Heads and sequences in one axis, a bias, softmax in float32."""
    q, k, v = (one.reshape(-1, TOKENS, D_K) for one in layer.three(x))
    bias = layer.bias.repeat(SEQUENCES, 1, 1)
    scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=SCALE)
    weights = functional.softmax(scores, -1, dtype=torch.float32)
    return layer.join(torch.bmm(weights, v).unflatten(0, (SEQUENCES, HEADS)))


def cap(layer, x):
    """A cap by tanh, a mask that is added, softmax in float32."""
    q, k, v = layer.three(x)
    scores = 2 * torch.tanh(q @ k.transpose(2, 3) * SCALE / 2)
    scores = scores + (~SEEN).float() * -1e9
    return layer.join(functional.softmax(scores.float(), -1).to(x.dtype) @ v)


def tokens_first(layer, x):
    """Tokens before sequences, scaled in place."""
    projected = layer.project(x.transpose(0, 1))
    q, k, v = (one.view(TOKENS, -1, D_K).transpose(0, 1) for one in projected)
    q *= SCALE
    scores = torch.bmm(q, k.transpose(1, 2)).view(SEQUENCES, HEADS, TOKENS, TOKENS)
    weights = functional.softmax(scores + layer.bias, -1)
    outputs = torch.bmm(layer.drop(weights).view(-1, TOKENS, TOKENS), v)
    return layer.o(outputs.transpose(0, 1).reshape(TOKENS, SEQUENCES, -1))


def keys_first(layer, x):
    """Heads within the width's last axis, keys times queries."""
    split = (one.view(SEQUENCES, TOKENS, D_K, HEADS) for one in layer.project(x))
    q, k, v = (one.permute(0, 3, 1, 2) for one in split)
    weights = ((k / math.sqrt(D_K)) @ q.transpose(-1, -2)).softmax(-2)
    return layer.join(weights.transpose(-1, -2) @ v)


def grouped(layer, x):
    """Two heads of keys for four of queries."""
    q, k, v = layer.three(x)
    q = q.unflatten(1, (2, 2))
    scores = torch.einsum("bghid,bgjd->bghij", q, k[:, :2]) * SCALE
    weights = layer.drop(scores.softmax(-1))
    outputs = torch.einsum("bghij,bgjd->bghid", weights, v[:, :2])
    return layer.join(outputs.flatten(1, 2))


def rotary(layer, x):
    """Queries are scaled, then turned by rotary embeddings."""
    q, k, v = layer.three(x)
    angles = torch.arange(TOKENS)[:, None] * 1e4 ** (-torch.arange(0, D_K, 2) / D_K)
    angles = torch.cat([angles, angles], -1)

    def turn(y):
        first, second = y.chunk(2, -1)
        return y * angles.cos() + torch.cat([-second, first], -1) * angles.sin()

    return layer.join((turn(q * SCALE) @ turn(k).mT).softmax(-1) @ v)


#: Ways to write attention -> form and mask that are found beside the scale.
STYLES = {
    einsum: ("plain", "causal"),
    baddbmm: ("pair", "none"),
    cap: ("cap", "causal"),
    tokens_first: ("pair", "none"),
    keys_first: ("plain", "none"),
    grouped: ("plain", "none"),
    rotary: ("plain", "none"),
}


def sigmoid(layer, x):
    """No softmax."""
    q, k, v = layer.three(x)
    return layer.join(torch.sigmoid(q @ k.mT * SCALE) / TOKENS @ v)


def entry_by_entry(layer, x):
    """No product of matrices."""
    q, k, v = layer.three(x)
    scores = (q[..., None, :] * k[:, :, None]).sum(-1) * SCALE
    return layer.join(scores.softmax(-1) @ v)


def gathered(layer, x):
    """Scores that change their places."""
    q, k, v = layer.three(x)
    scores = q @ k.mT * SCALE
    scores = scores.gather(-1, torch.arange(TOKENS).expand(scores.shape))
    return layer.join(scores.softmax(-1) @ v)


def twice(layer, x):
    """Softmax of softmax."""
    q, k, v = layer.three(x)
    return layer.join((q @ k.mT * SCALE).softmax(-1).softmax(-1) @ v)


def in_pieces(layer, x):
    """Keys that are multiplied in two parts."""
    q, k, v = layer.three(x)
    parts = [q @ piece.mT for piece in k.split(TOKENS // 2, 2)]
    return layer.join((torch.cat(parts, -1) * SCALE).softmax(-1) @ v)


#: What cannot be followed -> what is said of it.
UNFOLLOWED = {
    sigmoid: "no softmax after a product of .*blocks of keys",
    entry_by_entry: "softmax of what is no product of two tensors",
    gathered: "lost at gather",
    twice: r"lost at a second softmax \(softmax\)",
    in_pieces: "lost at cat",
}


def built(attend):
    """Return a layer and an input."""
    torch.manual_seed(0)
    return Layer(attend), torch.randn(SEQUENCES, TOKENS, WIDTH)


def run(layer, x, *, inside=False):
    """Run a layer there and back; returns outputs and all gradients."""
    layer.zero_grad()
    x = x.clone().requires_grad_()
    torch.manual_seed(5)  # of dropout
    with capture(layer) if inside else nullcontext() as captured:
        outputs = layer(x)
        outputs.sin().sum().backward()
    grads = [p.grad.clone() for p in layer.parameters() if p.grad is not None]
    return captured, [outputs, x.grad, *grads]


@pytest.mark.parametrize("attend", [*STYLES, *UNFOLLOWED], ids=lambda f: f.__name__)
def test_capture_changes_nothing(attend):
    """Outputs and gradients to the bit, in training with dropout."""
    layer, x = built(attend)
    _, without = run(layer, x)
    _, within = run(layer, x, inside=True)
    assert len(without) == len(within) > 4
    assert all(map(torch.equal, without, within))


@pytest.mark.parametrize("attend", STYLES, ids=lambda f: f.__name__)
def test_written_out_it_is_followed(attend):
    """The scale in every head, with what is beside it; queries of each sequence and
    head in their places, and the keys they met.
    """
    layer, x = built(attend)
    captured, _ = run(layer, x, inside=True)
    assert_attention_scale(captured, "sqrt", rtol=1e-4)
    frame = captured.applied_scale()
    form, mask = STYLES[attend]
    assert set(frame["form"]) == {form}
    assert set(frame["mask"]) == {mask}
    assert len(frame) == HEADS
    model = captured.models()[0]
    assert (len(model.sequences), model.d_k) == (SEQUENCES, D_K)
    assert captured.passed["source"].item() == "written out"
    assert captured.passed["scale"].item() == pytest.approx(SCALE)
    assert captured.passed["cap"].item() == (2.0 if attend is cap else None)
    sizes = (D_K, HEADS) if attend is keys_first else (HEADS, D_K)
    with torch.no_grad():
        split = [one(x).unflatten(-1, sizes) for one in (layer.q, layer.v)]
    wanted, values = (one.mT for one in split) if attend is keys_first else split
    for sequence in range(SEQUENCES):
        for head in model.heads():
            q, _ = model.read(head, sequence)
            expected = wanted[sequence, :, head.head].numpy()
            if attend is rotary:  # turned: of the same length
                q, expected = (np.linalg.norm(one, axis=1) for one in (q, expected))
            assert q == pytest.approx(expected, abs=1e-5)
            of_values = head.head // 2 if attend is grouped else head.head
            expected = values[sequence, :, of_values].numpy()
            v = model.take(head, sequence)["v"]
            assert v == pytest.approx(expected, abs=1e-5)
            weights = model.read_rows(head, sequence, TOKENS).weights
            assert weights.sum(axis=1) == pytest.approx(np.ones(TOKENS), abs=1e-5)


@pytest.mark.parametrize("attend", UNFOLLOWED, ids=lambda f: f.__name__)
def test_what_cannot_be_followed_is_refused_with_the_way_out(attend):
    """By arrays that somebody keeps."""
    captured, _ = run(*built(attend), inside=True)
    with pytest.raises(InputError, match=UNFOLLOWED[attend]) as error:
        captured.applied_scale()
    assert "q, k and weights or q, k, v and outputs" in str(error.value)


def test_queries_that_were_overwritten_are_refused():
    """What is read after the product with values is not what was multiplied."""
    q, k, v = torch.randn(3, 2, HEADS, TOKENS, D_K)
    with capture() as captured:
        weights = (q @ k.mT * SCALE).softmax(-1)
        q.zero_()
        weights @ v
    with pytest.raises(InputError, match="queries or keys were written into"):
        captured.applied_scale()


def test_softmax_over_the_queries_is_told():
    """What sums with values says which axis is that of the keys."""

    def wrong(layer, x):
        q, k, v = layer.three(x)
        return layer.join((q @ k.mT * SCALE).softmax(-2) @ v)

    captured, _ = run(*built(wrong), inside=True)
    assert set(captured.applied_scale()["outcome"]) == {"over_queries"}


def test_projections_by_tensors_are_no_attention():
    """Of models whose matrices are no parameters; a scale of queries is kept."""
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(2, 3, WIDTH, WIDTH, generator=generator)
    x = torch.randn(TOKENS, WIDTH, generator=generator)
    with capture(torch.nn.Identity()) as captured:
        for layer in matrices:
            split = ((x @ one).unflatten(-1, (HEADS, -1)) for one in layer)
            q, k, v = (one.transpose(0, 1) for one in split)
            weights = torch.softmax(q * 0.25 @ k.transpose(1, 2), -1)
            x = x + (weights @ v).transpose(0, 1).flatten(1)
    assert not captured.missed
    assert list(captured.passed["scale"]) == pytest.approx([0.25, 0.25])


def test_some_attention_that_is_lost_is_not_left_out_in_silence():
    """Unless layers are named."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(Layer(einsum), Layer(gathered))
    with capture(model) as captured:
        model(torch.randn(SEQUENCES, TOKENS, WIDTH))
    with pytest.raises(InputError, match="lost at gather"):
        captured.applied_scale()
    assert set(captured.applied_scale([0])["outcome"]) == {"scale"}
    assert "gather" in captured.missed[0]


def test_a_provenance_ends_with_its_tensor():
    """Nothing is held of what the model has let go."""
    layer, x = built(einsum)
    with torch.no_grad(), capture(layer):
        layer(x)
        (mode,) = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
        held = [one for _, one in mode.tracker._provenances.values()]
    assert not [one for one in held if one.product or one.weights]


def modules():
    """Yield torch's modules with inputs, and how many calls of attention they make."""
    torch.manual_seed(1)
    x, y = torch.randn(2, SEQUENCES, TOKENS, WIDTH)
    sizes = {"d_model": WIDTH, "nhead": HEADS, "dim_feedforward": 32}
    sizes["batch_first"] = True
    hidden = torch.zeros(SEQUENCES, TOKENS, dtype=torch.bool)
    hidden[0, 30:] = True
    later = torch.nn.Transformer.generate_square_subsequent_mask(TOKENS)
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(**sizes), 2)
    decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(**sizes), 2)
    attention = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    yield "encoder", encoder, (x,), {}, 2
    yield "encoder, padded", encoder, (x,), {"src_key_padding_mask": hidden}, 2
    yield "encoder, causal", encoder, (x,), {"mask": later, "is_causal": True}, 2
    yield "decoder", decoder, (x, y[:, :30]), {"tgt_mask": later}, 4
    for need in (True, False):
        yield "cross", attention, (x, y, y), {"need_weights": need}, 1
        yield "self", attention, (x, x, x), {"need_weights": need}, 1


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "gradients", [torch.enable_grad, torch.no_grad, torch.inference_mode]
)
def test_modules_of_torch(training, gradients, monkeypatch):
    """In training and evaluation, with gradients and without the fast path."""
    monkeypatch.setattr(torch.backends.mha, "_is_fastpath_enabled", False)
    for name, module, inputs, options, calls in modules():
        module.train(training)
        with gradients():
            torch.manual_seed(2)
            without = module(*inputs, **options)
            torch.manual_seed(2)
            with capture(module, rows=12) as captured:
                within = module(*inputs, **options)
        for a, b in zip(*map(tensors_of, (without, within)), strict=True):
            assert torch.equal(a, b), name
        assert len(captured.passed) == calls, name
        assert_attention_scale(captured, "sqrt", rtol=1e-3)
        models = captured.models()
        assert sum(len(one.heads()) for one in models) == calls * HEADS, name
        assert {len(one.sequences) for one in models} == {SEQUENCES}, name


def tensors_of(made):
    """Return what a module gave back."""
    return [made] if torch.is_tensor(made) else [one for one in made if one is not None]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention():
    """Its mask is a function, and so is what it adds to scores; a cap is no bias."""
    from torch.nn.attention import flex_attention as flex  # noqa: PLC0415

    torch.manual_seed(3)
    q, k, v = torch.randn(3, 2, HEADS, TOKENS, D_K)
    reach, slopes = torch.tensor(7), torch.rand(HEADS)

    def seen(_sequence, _head, i, j):
        return (i >= j) & (i - j < reach)

    mask = flex.create_block_mask(seen, None, None, TOKENS, TOKENS, device="cpu")

    def added(score, _, h, i, j):
        return score - slopes[h] * (i - j)

    def attend():
        options = {"block_mask": mask, "score_mod": added, "enable_gqa": True}
        return flex.flex_attention(q, k[:, :2], v[:, :2], **options)

    with torch.no_grad():
        without = attend()
        with capture() as captured:
            within = attend()
    assert torch.equal(without, within)
    assert_attention_scale(captured, "sqrt", rtol=1e-4)
    assert set(captured.applied_scale()["mask"]) == {"window"}
    # a function of the score itself adds nothing that is known without it
    with torch.no_grad(), capture() as captured:
        flex.flex_attention(
            3 * q, k, v, score_mod=lambda score, *_: 2 * torch.tanh(score / 2)
        )
    frame = captured.applied_scale()
    assert set(frame["form"]) == {"cap"}
    assert frame["parameter"].to_numpy() == pytest.approx(2.0, rel=1e-3)


#: Masks of the layers of tiny models of transformers.
MASKS = {
    "mistral-window": ["window", "window"],
    "gemma3-window": ["window", "causal"],
    "llama4-chunk": ["chunks", "chunks"],
}


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", MASKS)
def test_windows_and_chunks(name, implementation):
    """The mask is known because it was passed, or from the zeros of weights."""
    model, inputs = build(name, implementation)
    with torch.no_grad(), capture(model, rows=30) as captured:
        model(**inputs)
    assert_attention_scale(captured, rtol=1e-4)
    frame = captured.applied_scale()
    assert list(frame.groupby("layer")["mask"].first()) == MASKS[name]
    assert frame.groupby("layer")["mask"].nunique().eq(1).all()


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_decoding_with_a_cache(cache, implementation):
    """Queries come one by one, and meet all keys of the cache."""
    config = build("llama")[0].config
    torch.manual_seed(5)
    model = transformers.LlamaForCausalLM(config).eval()
    model.set_attn_implementation(implementation)
    tokens = torch.randint(3, 100, (2, 20))
    options = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False}
    options["cache_implementation"] = cache
    with torch.no_grad():
        before = model.generate(tokens, **options)
        with capture(model) as captured:
            during = model.generate(tokens, **options)
    assert torch.equal(before, during)
    assert_attention_scale(captured, "sqrt", rtol=1e-4)
    assert len(captured.passed) == 2


def test_what_was_added_is_written_and_read(tmp_path):
    """A file holds the mask that was passed, and tells the same."""
    captured, _ = record(*build("mistral-window", "sdpa"))
    captured.save(tmp_path / "qk.npz")
    assert "added" in np.load(tmp_path / "qk.npz")
    assert_attention_scale(tmp_path / "qk.npz", "sqrt", rtol=1e-4)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["Bart", "T5"])
def test_what_generates_is_no_other_model(name, implementation):
    """Encoder, prompt and single tokens: passes of several lengths and layers."""
    layers = ("encoder_layers", "decoder_layers", "num_layers", "num_decoder_layers")
    sizes = dict.fromkeys(layers, 2) | {"decoder_start_token_id": 0}
    config = build(name.lower(), implementation, **sizes)[0].config
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config).eval()
    tokens = torch.randint(3, 60, (1, 20))
    with torch.no_grad(), capture(model) as captured:
        model.generate(tokens, max_new_tokens=24, min_new_tokens=24, do_sample=False)
    assert not captured.missed
    assert len(captured.passed) == 6
    told = set(captured.applied_scale()["known"])
    assert told <= {"", "1" if name == "T5" else "sqrt(d_k)"}
    assert compare(captured, captured).first is None
