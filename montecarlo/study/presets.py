"""Presets: the grids that a report, or a claim of one's own, is sampled on."""

from montecarlo.study.grid import Block, Grid

__all__ = [
    "ERROR_RATE",
    "INITIAL",
    "PRACTICE_D_K",
    "PRACTICE_N_KEYS",
    "PRESETS",
    "SHIFTED",
    "Block",
    "Grid",
]

#: The nominal error rate of all verdicts together, where nobody says another.
ERROR_RATE = 0.01


def _powers(base: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(base**exponent for exponent in range(low, high + 1))


#: Distributions of q and k with means that are not 0, and with other variances.
SHIFTED = (
    ("gaussian(mean=0.5)", "gaussian(mean=0.5)"),
    ("gaussian(mean=0.5)", "gaussian"),
    ("gaussian", "gaussian(mean=0.5)"),
)
RESCALED = (
    ("gaussian(std=2.0)", "gaussian"),
    ("gaussian(std=2.0)", "gaussian(std=2.0)"),
    ("gaussian(std=4.0)", "gaussian(std=2.0)"),
)
#: (initialisation, what a weight matrix holds, width, norms).
INITIAL = (
    ("lecun_normal", "full", 512, ("layer", "rms")),
    ("xavier_uniform", "full", 512, ("layer", "rms")),
    ("xavier_uniform", "fused", 512, ("layer", "rms")),
    ("xavier_uniform", "head", 512, ("layer", "rms")),
    ("kaiming_linear", "full", 512, ("layer", "rms")),
    ("he_normal", "full", 512, ("layer", "rms")),
    ("normal_002", "full", 768, ("layer", "rms")),
    ("normal_002", "full", 4096, ("layer",)),
)
WIDE = (("normal_002", "full", 12288, ("layer", "rms")),)


def _distribution_blocks(
    distributions: tuple[tuple[str, str], ...],
    d_k: tuple[int, ...],
    n_keys: tuple[int, ...],
) -> tuple[Block, ...]:
    return tuple(
        Block(d_k, n_keys, distribution_q=q, distribution_k=k) for q, k in distributions
    )


def _planted(
    rhos: tuple[float, ...], d_k: tuple[int, ...], n_keys: tuple[int, ...]
) -> tuple[Block, ...]:
    return tuple(
        Block(d_k, n_keys, pairs=False, dependence=f"planted({rho!r})") for rho in rhos
    )


def _initial(
    entries: tuple[tuple[str, str, int, tuple[str, ...]], ...], d_k: tuple[int, ...]
) -> tuple[Block, ...]:
    return tuple(
        Block(
            d_k,
            initialisation=f"init(kind={kind},norm={norm},shape={shape},width={width})",
        )
        for kind, shape, width, norms in entries
        for norm in norms
    )


_ALIGNED = Block((512,), dependence="pairs(1.0)")


def _long_rows(
    replicates: tuple[tuple[tuple[int, ...], int, int], ...],
) -> tuple[Block, ...]:
    """Make blocks of rows of (d_k, n_keys, replicates)."""
    return tuple(
        Block(d_k, (n_keys,), pairs=False, replicates=number)
        for d_k, n_keys, number in replicates
    )


#: Sizes of practice: those that a claim speaks of when it names none.
PRACTICE_D_K = (64, 128, 256)
PRACTICE_N_KEYS = (128, 1024, 4096, 16384)
#: Those of the longest contexts, which the other presets do not sample.
LONGEST_D_K = (*PRACTICE_D_K, 512)
#: Replicates by which the share of saturated rows has a standard error of about 0.01.
_PRACTICE = _long_rows(
    (
        (PRACTICE_D_K, 1024, 32),
        (PRACTICE_D_K, 4096, 32),
        (PRACTICE_D_K, 16384, 48),
    )
)
#: Scores of several hundreds and of thousands: of standard deviation 64 and 1024.
_HUGE_SCORES = (
    Block((4096,), (128,), pairs=False, formats=True),
    Block(
        (4096,),
        (128,),
        pairs=False,
        distribution_q="gaussian(std=4.0)",
        formats=True,
        replicates=16,
    ),
)

PRESETS = {
    "quick": Grid(
        d_k=(1, 16, 64, 256, 1024),
        n_keys=(32, 128),
        distributions=("rademacher", "laplace", "student_t3"),
        distribution_d_k=(16, 256),
        distribution_n_keys=(32,),
        blocks=(
            *_distribution_blocks(SHIFTED, (64,), (32,)),
            *_distribution_blocks(RESCALED, (64,), (32,)),
            *_planted((0.5,), (16, 256), (128,)),
            *_initial(INITIAL[2:3], (64,)),
            _ALIGNED,
            Block((64,), (128,), pairs=False, formats=True),
            Block((128,), (128,), pairs=False),
            *_long_rows((((64, 128), 16384, 24),)),
        ),
        tails=((64, 8),),
        most=256,
    ),
    "standard": Grid(
        d_k=_powers(2, 0, 10),
        n_keys=(8, 32, 128, 512),
        edges=((4096, 128), (64, 2048)),
        distribution_d_k=(16, 64, 256, 1024),
        distribution_n_keys=(128,),
        blocks=(
            *_distribution_blocks(SHIFTED, (16, 64, 256), (128,)),
            *_distribution_blocks(RESCALED, (16, 64, 256), (32, 512)),
            *_planted((0.125, 0.5), (16, 64, 256, 1024, 4096), (128,)),
            *_initial(INITIAL, (64, 128)),
            _ALIGNED,
            Block((16, 64, 256, 1024), (128,), pairs=False, formats=True),
            Block((64,), (65536,), pairs=False, formats=True),
            *_HUGE_SCORES,
            *_PRACTICE,
        ),
        tails=((16, 64), (64, 32), (256, 8)),
        most=512,
    ),
    "full": Grid(
        d_k=_powers(2, 0, 12),
        n_keys=_powers(2, 3, 11),
        edges=((64, 8192), (1024, 16384)),
        distribution_d_k=_powers(4, 0, 6),
        distribution_n_keys=(32, 128, 512),
        blocks=(
            *_distribution_blocks(SHIFTED, _powers(4, 2, 5), (32, 128, 512)),
            *_distribution_blocks(RESCALED, _powers(4, 2, 5), (32, 128, 512)),
            *_planted((0.0625, 0.125, 0.25, 0.5), _powers(4, 2, 6), (128, 1024)),
            *_initial((*INITIAL, *WIDE), (64, 128)),
            _ALIGNED,
            Block((16, *_powers(2, 6, 10)), (128, 1024), pairs=False, formats=True),
            Block((64,), (65536,), pairs=False, formats=True),
            *_HUGE_SCORES,
            *_long_rows(((PRACTICE_D_K, 4096, 256), (PRACTICE_D_K, 16384, 256))),
            *_long_rows(((LONGEST_D_K, 131072, 64),)),
        ),
        tails=((16, 256), (64, 128), (256, 64), (1024, 32)),
        first=512,
        most=8192,
        first_large=128,
        most_large=2048,
    ),
}
