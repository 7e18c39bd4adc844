"""What a configuration says: by which field, and what keeps it from saying anything."""

import json
import math

import numpy as np
import pytest

from montecarlo import assert_attention_scale
from montecarlo.errors import InputError
from montecarlo.model.answers import say_answer
from montecarlo.model.checking import answer_models
from montecarlo.model.expected import CONVENTIONS, RULES, Caller, expected_of
from tests.commands import observe as main
from tests.model.heads import weighted

#: 0.1 ln(40) + 1
MSCALE = 1.3688879454113936
LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32}
OPT = {"model_type": "opt", "hidden_size": 768, "num_attention_heads": 12}
DEEPSEEK = {"model_type": "deepseek_v3", "qk_nope_head_dim": 128}
DEEPSEEK |= {"qk_rope_head_dim": 64, "head_dim": 64}
YARN = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0}
SIDES = {"encoder_attention_heads": 4, "decoder_attention_heads": 8}
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_head": 12}
GRANITE = {"model_type": "granite", "attention_multiplier": 1 / 64, "head_dim": 64}
GEMMA3 = {"model_type": "gemma3_text", "query_pre_attn_scalar": 168, "head_dim": 128}


@pytest.mark.parametrize(
    ("config", "divisor", "words"),
    [
        (LLAMA, 128**0.5, "hidden_size / num_attention_heads = 4096 / 32"),
        (LLAMA | {"head_dim": 80}, 80**0.5, "sqrt(head_dim = 80)"),
        (OPT, 1.0, "queries and keys are multiplied by 0.125 before"),
        (GPT2, 8.0, "n_embd / n_head = 768 / 12"),
        (GPT2 | {"scale_attn_weights": False}, 1.0, "scale_attn_weights = false"),
        (GEMMA3, 168**0.5, "query_pre_attn_scalar = 168"),
        (GRANITE, 64.0, "attention_multiplier = 0.015625"),
        ({"model_type": "t5", "d_kv": 64}, 1.0, "t5 does not scale"),
        ({"model_type": "zamba2", "attention_head_dim": 160}, 80**0.5, "0.5 (att"),
        (DEEPSEEK, 192**0.5, "qk_nope_head_dim + qk_rope_head_dim = 192"),
        (DEEPSEEK | {"rope_scaling": YARN}, 192**0.5 / MSCALE**2, "1.369^2 (mscale"),
    ],
)
def test_the_field_is_named(config, divisor, words):
    """And its number is the one that the architecture makes of it."""
    expected = expected_of(dict.fromkeys([0, 1], Caller("", config)))
    assert expected.value == pytest.approx(divisor, rel=1e-12)
    assert words in expected.text
    assert f"(configuration of {config['model_type']})" in expected.text


def test_exceptions_by_layer():
    """The number of a layer, and a head of another width in some."""
    config = GPT2 | {"scale_attn_by_inverse_layer_idx": True}
    expected = expected_of(dict.fromkeys(range(3), Caller("", config)))
    assert [expected.at(n).value for n in range(3)] == [8.0, 16.0, 24.0]
    assert math.isnan(expected.value)
    assert expected.is_known
    config = LLAMA | {"per_layer_config": {"01": {"head_dim": 256}}}
    expected = expected_of(dict.fromkeys(range(2), Caller("", config)))
    assert expected.at(0).value == 128**0.5
    assert expected.at(1).value == 16.0


@pytest.mark.parametrize(
    ("config", "factor", "divisor"),
    [
        (LLAMA, 1.0, 128**0.5),
        (LLAMA, 128**-0.5, 1.0),
        (OPT, 1.0, 8.0),
        (OPT, 0.125 * 1.07, 1.07),
        # what is done to queries cannot be told: no factor is believed
        (LLAMA | {"model_type": "llama4_text"}, 1.1, 128**0.5),
        (LLAMA | {"model_type": "olmo", "clip_qkv": 8.0}, 0.9, 128**0.5),
    ],
)
def test_what_happens_before_attention_counts(config, factor, divisor):
    """What is applied before attention is not expected of attention once more."""
    expected = expected_of({0: Caller("Attention", config, 0, factor)})
    assert expected.value == pytest.approx(divisor, rel=1e-3)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"model_type": "mine"}, "how model_type 'mine' scales is not known"),
        (
            {"model_type": "gemma3", "text_config": GEMMA3},
            "'gemma3' has parts, each with its own: text_config ('gemma3_text')",
        ),
        (
            {"model_type": "bart", "d_model": 64} | SIDES,
            "encoder and decoder have different numbers of heads",
        ),
    ],
)
def test_what_is_not_known_is_no_answer(config, reason):
    """With what was found; arrays are neither right nor wrong by it."""
    expected = expected_of(dict.fromkeys([0], Caller("", config)))
    assert not expected.is_known
    with pytest.raises(AssertionError) as raised:
        assert_attention_scale(made(5.0), config=config)
    first = str(raised.value).splitlines()[0]
    assert first.startswith("scores divided as configured? cannot be told: ")
    assert reason in first


def test_queries_that_were_not_seen_are_no_answer():
    """OPT multiplies them: whether it did is measured; written out, it is seen."""
    assert expected_of({0: Caller("", OPT, 0, is_whole=True)}).value == 8.0
    expected = expected_of({0: Caller("OPTAttention", OPT, 0)})
    assert "was not seen" in expected.text
    assert not expected.is_known


def made(divisor, layers=1):
    """Return queries, keys and weights."""
    return weighted(1.0 / divisor, (3, layers, 2, 24, 8))


SMALL = {"model_type": "llama", "hidden_size": 16, "num_attention_heads": 2}


def test_the_configuration_is_the_default_where_there_is_one(tmp_path):
    """A mapping or a file; without one it is the root of d_k."""
    np.savez(tmp_path / "qk.npz", **made(5.0))
    (tmp_path / "config.json").write_text(json.dumps(SMALL | {"head_dim": 25}))
    for config in (SMALL | {"head_dim": 25}, tmp_path / "config.json"):
        assert_attention_scale(str(tmp_path / "qk.npz"), config=config)
        assert_attention_scale(made(5.0), "config", config=config)
        with pytest.raises(AssertionError, match=r"head_dim = 25\) = 5"):
            assert_attention_scale(made(8**0.5), config=config)
    assert_attention_scale(made(8**0.5))


def test_layers_that_differ_are_told_apart():
    """One of them is wrong, and named with what was expected of it."""
    config = {**GPT2, "n_embd": 16, "n_head": 2}
    config["scale_attn_by_inverse_layer_idx"] = True
    with pytest.raises(AssertionError) as raised:
        assert_attention_scale(made(8**0.5, layers=2), config=config)
    lines = str(raised.value).splitlines()
    assert lines[0].endswith("the configuration says, which differs by layer? no")
    assert "layer 1" in lines[1]
    assert "is the number of the layer left out?" in lines[1]
    assert lines[2].startswith("  layer 0, all heads: scores are divided by 2.828")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expect": "config"}, "expect 'config' must have a configuration: config, or"),
        ({"config": 5}, "config must be a mapping .*, or the path of one, got int"),
        ({"config": "missing.json"}, "config must be a readable file"),
        ({"config": {}}, "config must hold a text as model_type, got None"),
        ({"config": SMALL, "expect": "sqrt"}, "config must stand with expect 'config'"),
        (
            {"config": {"model_type": "llama", "hidden_size": 16}},
            "config must hold num_attention_heads or .*'llama', got model_type, hidden",
        ),
        ({"config": SMALL | {"head_dim": "8"}}, "head_dim of config must be a number"),
    ],
)
def test_bad_configurations_are_refused(options, message):
    """By one line: argument, requirement, what came."""
    with pytest.raises(InputError, match=f"^{message}") as raised:
        assert_attention_scale(made(8**0.5), **options)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000, "config must be JSON, got "),
        (b'"' + b"a" * 2**22 + b'"', "config must have at"),
    ],
)
def test_bad_files_are_refused(tmp_path, content, message):
    """Whatever is in them."""
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        assert_attention_scale(made(8**0.5), config=tmp_path / "config.json")


@pytest.mark.parametrize(
    ("divisor", "config", "status", "answer"),
    [
        (8**0.5, SMALL, 0, "= 2.82843 (configuration of llama)? yes"),
        (8.0, SMALL, 1, "= 2.82843 (configuration of llama)? no"),
        (8.0, {"model_type": "mine"}, 4, "'mine' scales is not known"),
    ],
)
def test_files_are_answered_by_a_configuration(  # noqa: PLR0917
    tmp_path, capsys, divisor, config, status, answer
):
    """The answer in one line, details after; the record says what was expected."""
    np.savez(tmp_path / "qk.npz", **made(divisor))
    (tmp_path / "config.json").write_text(json.dumps(config))
    files = str(tmp_path / "qk.npz"), "--config", str(tmp_path / "config.json")
    assert main([*files, "--output", str(tmp_path / "out")]) == status
    lines = capsys.readouterr().out.splitlines()
    assert answer in lines[0]
    assert lines[1].startswith("  layer 0, all heads: scores are divided by ")
    record = json.loads((tmp_path / "out" / "observation.json").read_text())["applied"]
    assert record["expected"] == "config"
    assert (record["expected_divisor"] is None) == (status == 4)
    written = json.loads((tmp_path / "out" / "run.json").read_text())
    assert [one["name"] for one in written["files"]] == ["qk.npz", "config.json"]


def test_what_is_configured_and_not_checked_is_named():
    """A yes is of the scale alone."""
    temperature = "a temperature by position"
    for more, words in (
        ({"attn_temperature_tuning": True}, temperature),
        ({"rope_parameters": {"llama_4_scaling_beta": 0.1}}, temperature),
        ({"use_qk_norm": True}, "the normalisation of q and k"),
        ({"use_qk_norm": False, "rope_parameters": None}, ""),
    ):
        (answer,) = answer_models(made(8**0.5), config=SMALL | more)
        assert say_answer(answer).partition("? yes; not checked: ")[2] == words


def test_conventions_are_rules_that_exist():
    """A name that is none would be a misprint."""
    assert {one.rule for one in CONVENTIONS.values()} <= set(RULES)
