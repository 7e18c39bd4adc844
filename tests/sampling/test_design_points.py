"""Design points: canonical names, shapes, and random streams that belong to names."""

import dataclasses
import itertools

import pytest

from montecarlo.sampling.design_points import (
    STREAMS,
    parse_point,
    stream,
)

FIELDS = {
    "distribution_q": "gaussian",
    "distribution_k": "laplace",
    "d_k": 64,
    "n_keys": 128,
}
BASE = parse_point(**FIELDS)
INITIALISATION = "init(kind=he_normal,norm=rms,shape=full,width=64)"


def changed_base(**changed):
    """The base with other fields, by their names."""
    return parse_point(**{**FIELDS, **changed})


def numbers(seed=1, point=BASE, index=0, which="q"):
    """The first draws of a stream."""
    return stream(seed, point, index, which).random(8).tobytes()


def test_name_holds_all_that_is_sampled():
    """Points that differ in any field have different names."""
    fields = {
        "distribution_q": ("gaussian", "gaussian(mean=0.5)", "gaussian(std=2.0)"),
        "distribution_k": ("gaussian(std=3.0)", "gaussian"),
        "d_k": (64, 6),
        "n_keys": (128, 12, None),
        "dependence": ("none", "pairs(0.5)", "planted(0.5)", "planted(1.0)"),
        "initialisation": ("", INITIALISATION, INITIALISATION.replace("64", "65")),
        "normalisation": ("none", "l2", "l2(gain=10.0)", "rms"),
        "mask": ("none", "full", "causal", "window(3)"),
    }
    points = []
    for values in itertools.product(*fields.values()):
        try:
            points.append(parse_point(**dict(zip(fields, values, strict=True))))
        except ValueError:  # a dependence that has no meaning there
            continue

    assert len({point.name for point in points}) == len(points) > 100
    names = ("distribution_q", "distribution_k", "normalisation", "dependence")
    for number, name in enumerate((*names, "initialisation", "mask")):
        assert {point.names[number] for point in points} == set(fields[name])
    for name in ("d_k", "n_keys"):
        assert {getattr(point, name) for point in points} == set(fields[name])
    there = {f.name for f in dataclasses.fields(BASE)}
    assert set(fields) | {"formats"} == there


def test_names_are_pinned():
    """Streams are keyed by names: a changed name changes every published number."""
    assert BASE.name == (
        "law_q=gaussian;law_k=laplace;dependence=none;setup=;d_k=64;n_keys=128"
    )
    assert parse_point("gaussian", "gaussian", 4).name == (
        "law_q=gaussian;law_k=gaussian;dependence=none;setup=;d_k=4;pairs"
    )
    assert parse_point("gaussian", "gaussian", 4, 8, "planted(0.5)").name == (
        "law_q=gaussian;law_k=gaussian;dependence=planted(0.5);setup=;d_k=4;n_keys=8"
    )
    assert parse_point(
        "gaussian", "gaussian", 4, initialisation=INITIALISATION
    ).name == (
        f"law_q=gaussian;law_k=gaussian;dependence=none;setup={INITIALISATION};d_k=4;pairs"
    )
    assert changed_base(normalisation="l2(gain=10)").name == (
        f"{BASE.name};normalisation=l2(gain=10.0)"
    )
    assert changed_base(mask="causal").name == f"{BASE.name};mask=causal"


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 2},
        {"seed": 0},
        {"seed": 2**32 + 1},
        {"index": 1},
        {"which": "k"},
        {"which": "v"},
        {"point": changed_base(d_k=65)},
        {"point": changed_base(n_keys=129)},
        {"point": changed_base(n_keys=None)},
        {"point": changed_base(distribution_q="uniform")},
        {"point": changed_base(distribution_k="gaussian")},
        {"point": changed_base(normalisation="rms")},
        {"point": changed_base(mask="full")},
        {
            "point": changed_base(
                distribution_k="gaussian", initialisation=INITIALISATION
            )
        },
        {"which": "copy"},
        {"which": "tail"},
    ],
)
def test_other_key_gives_other_numbers(changed):
    """A change of seed, name, index or matrix changes the stream."""
    assert numbers() != numbers(**changed)


#: Indices of replicates: a thousand in a row, then powers of two and their neighbours.
INDICES = sorted({*range(1024), *(2**k + d for k in range(10, 32) for d in (-1, 0, 1))})


def repeated(words):
    """How many of some streams are not new."""
    return len(words) - len(set(words))


def test_streams_do_not_repeat():
    """No index takes up the stream of another, however far apart they are; with indices
    modulo 64, or any other power of two, they would.
    """
    for which in STREAMS:
        words = [
            int(stream(1, BASE, index, which).bit_generator.random_raw())
            for index in INDICES
        ]
        assert repeated(words) == 0  # by chance once in 10**13
    for modulus in (64, 1024, 2**16, 2**31):
        assert repeated([index % modulus for index in INDICES]) > 0


def test_first_numbers_are_pinned():
    """A seed reproduces numbers of earlier versions: the generator is a promise.

    From the first version; they change with SFC64, SeedSequence, or the name alone.
    """
    assert stream(1, BASE, 0, "q").random(2).tolist() == [
        0.9709887533472582,
        0.04960165937694805,
    ]
