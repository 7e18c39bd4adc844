"""claims.json and run.json of a folder of results, field by field."""

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from montecarlo.claims.calibration import Calibration
from montecarlo.claims.outcomes import Judgement
from montecarlo.claims.schema import ModelSize, RecordEntry
from montecarlo.claims.verdicts import Verdict
from montecarlo.claims.z_scores import ZScores
from montecarlo.study.columns import MEASUREMENTS, Finite
from montecarlo.study.curves import CURVE_FILES
from montecarlo.study.folder import RUN_FILE, SCHEMA, ResultsError, read_run
from montecarlo.study.presets import Grid
from montecarlo.study.validating import about, validate

CLAIMS_FILE = "claims.json"


class ClaimsRecord(Judgement, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """claims.json: how everything that is judged came out."""

    error_rate: Annotated[float, about("nominal error rate of all of it", gt=0, lt=1)]
    simultaneous_error: Annotated[
        float, about("as stated, of one end of an interval", gt=0, lt=1)
    ]
    calibration: Annotated[Calibration, about("how often intervals missed in trials")]
    analyses: Annotated[int, about("interim analyses of all statistics together")]
    z_scores: Annotated[ZScores, about("distances to exact values")]
    models: Annotated[tuple[ModelSize, ...], about("published sizes of models")]
    records: Annotated[tuple[RecordEntry, ...], about("published facts")]

    def failed_self_checks(self) -> list[str]:
        """Return the ids of the refuted self-checks, ``z-scores`` last."""
        failed = [c.id for c in self.self_checks if c.verdict == Verdict.REFUTED]
        if self.z_scores.verdict == Verdict.REFUTED:
            failed.append("z-scores")
        return failed


#: What a report's numbers and verdicts are read from.
DATA_FILES = (MEASUREMENTS, *CURVE_FILES, CLAIMS_FILE)

Hash = Annotated[str, about("", pattern=r"^[0-9a-f]{64}\Z")]
Program = Annotated[Literal["montecarlo"], about("who wrote the folder")]
Version = Annotated[int, about("version of this format", ge=SCHEMA, le=SCHEMA)]
Seed = Annotated[int, about("seed of all random numbers", ge=0, le=2**63 - 1)]
Codes = Annotated[
    tuple[Annotated[str, about("", pattern=r"^[a-z]{2,3}\Z")], ...],
    about("languages of the pages", min_length=1),
]
Versions = Annotated[
    dict[str, str], about("versions of the program, of Python and of libraries")
]
Kernel = Annotated[
    str, about("kind of processor, by which NumPy's libraries chose their code")
]
Hashes = Annotated[
    dict[str, Hash], about("SHA-256 of every file but run.json and timing.json")
]
Digest = Annotated[
    Hash,
    about(
        "SHA-256 of all else in run.json: as JSON in ASCII, keys sorted, `, ` and `: ` "
        "between"
    ),
]
Text = Annotated[str, about("", max_length=2000)]


class ReportRun(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """run.json of a report on the five texts, of one's own claims, or of figures."""

    program: Program
    schema: Version
    seed: Seed
    preset: Annotated[
        Literal["quick", "standard", "full", ""],
        about("preset that the grid is; empty: one of the user's own"),
    ]
    error_rate: Annotated[
        float, about("nominal error rate of all verdicts together", gt=0.0, lt=0.5)
    ]
    claims: Annotated[
        tuple[Text, ...], about("ids of the claims that were judged", min_length=1)
    ]
    grid: Annotated[Grid, about("what was sampled, as `[grid]` of a configuration")]
    versions: Versions
    kernel: Kernel
    replicates: Annotated[
        dict[str, Annotated[int, about("", ge=0, le=2**40)]],
        about("name of each point to how many replicates were taken"),
    ]
    time_limit_reached: Annotated[bool, about("whether a time limit ended sampling")]
    only: Annotated[tuple[Text, ...], about("claims of `--only`; none: all")]
    languages: Codes
    own_claims: Annotated[
        Literal["claims.toml"] | UnsetType,
        about("file of the user's own claims; left out for the five texts"),
    ] = UNSET
    sha256: Hashes
    digest: Digest


class ObservedFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that was observed."""

    name: Annotated[str, about("without its folder")]
    bytes: Annotated[int, about("its size", "bytes", ge=0)]
    sha256: Annotated[Hash, about("SHA-256 of the file")]


class ObservationRun(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """run.json of an observation."""

    program: Program
    schema: Version
    kind: Annotated[Literal["observation"], about("told from a report by this")]
    command: Annotated[str, about("what to type to make it again")]
    files: Annotated[tuple[ObservedFile, ...], about("what was observed")]
    divisor: Annotated[str, about("of the model, as typed")]
    seed: Seed
    versions: Versions
    kernel: Kernel
    sha256: Hashes
    digest: Digest


class Timing(Struct, frozen=True, forbid_unknown_fields=True):
    """timing.json: what may differ between equal runs; nothing reads it."""

    command: Annotated[tuple[str, ...], about("the command line, without its name")]
    seconds: Annotated[dict[str, Finite], about("how long each part took", "s")]
    executor: Annotated[str | UnsetType, about("kind of the workers")] = UNSET
    jobs: Annotated[int | UnsetType, about("how many workers")] = UNSET


def read_report_run(folder: Path) -> dict[str, Any]:
    """Read run.json of a report, checked: its digest, its fields, hashes of files.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    ResultsError
        One line: file, requirement, what came.
    """
    run = read_run(folder)
    if "kind" in run:
        raise ResultsError(
            f"results must be those of a report, got an {run['kind']!s:.40}"
        )
    validate(run, ReportRun, RUN_FILE)
    own = [run["own_claims"]] if "own_claims" in run else []
    for name in (*DATA_FILES, *own):
        if name not in run["sha256"]:
            raise ResultsError(
                f"results must have {name!r} among the files of their {RUN_FILE}, got "
                f"{len(run['sha256'])} others"
            )
    return run
