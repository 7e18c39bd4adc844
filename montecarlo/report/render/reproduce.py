"""The command that makes a report again, from the record of its run."""

import json
from collections.abc import Mapping
from typing import Any

from montecarlo.report.language.catalogues import LANGUAGES
from montecarlo.report.language.own_words import OWN_FILE
from montecarlo.study.folder import RUN_FILE
from montecarlo.study.presets import ERROR_RATE

#: The configuration file of a run that flags alone cannot name.
FILE_NAME = "report.toml"


def canonical_command(run: Mapping[str, Any]) -> str:
    """Return what to type to make this report again.

    Where flags cannot say it, that begins with a configuration file.
    """
    if "own_claims" in run:
        words = [f"python -m montecarlo judge {OWN_FILE} --preset {run['preset']}"]
        words.append(f"--seed {run['seed']}")
        if run["error_rate"] != ERROR_RATE:
            words.append(f"--error-rate {run['error_rate']!r}")
        return " ".join([*words, *_languages(run), "--output output"])
    words = ["python -m montecarlo report"]
    if run.get("time_limit_reached"):
        return f"{words[0]} --replicates-from {RUN_FILE}"
    file = _configuration(run)
    if file:
        words.append(f"--config {FILE_NAME}")
    if run["preset"]:
        words.append(f"--preset {run['preset']}")
    words.append(f"--seed {run['seed']}")
    if run["only"]:
        words.append(f"--only {','.join(run['only'])}")
    return file + " ".join([*words, *_languages(run)])


def _languages(run: Mapping[str, Any]) -> list[str]:
    """Return the option for its languages; all of them need none."""
    if set(run["languages"]) == set(LANGUAGES):
        return []
    return [f"--lang {','.join(run['languages'])}"]


def _configuration(run: Mapping[str, Any]) -> str:
    """Return the lines that write what flags cannot say; mostly none."""
    lines = []
    if run["error_rate"] != ERROR_RATE:
        lines.append(f"error_rate = {run['error_rate']!r}")
    if not run["preset"]:
        # a value of JSON is one of TOML as well: whole numbers, names, lists of them
        grid = run["grid"].items()
        lines += ["[grid]", *(f"{name} = {json.dumps(value)}" for name, value in grid)]
    if not lines:
        return ""
    return "\n".join([f"cat > {FILE_NAME} <<'END'", *lines, "END", ""])
