"""Settings that had another name before: run folders and command lines of then are still read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turngym.trainers.settings.precision import DTYPES

_PRECISION_OF: Mapping[str, str] = {dtype: precision for precision, dtype in DTYPES.items()}
_OPTIONS: Mapping[str, str] = {"--dtype": "--precision", "--update.momentum": "--update.beta1"}


def current_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run folder with the names of today.

    Weight decay acted on all weights before it left out norms and biases.

    >>> current_names({"dtype": "bfloat16", "update": {"momentum": 0.5}})
    {'update': {'beta1': 0.5}, 'precision': 'bf16'}
    """
    found = dict(settings)
    update = dict(found.get("update", {}))
    if "momentum" in update:
        update["beta1"] = update.pop("momentum")
        if update.get("weight_decay"):
            update["decay"] = "all"
    found["update"] = update
    if "dtype" in found:
        dtype = found.pop("dtype")
        found["precision"] = _PRECISION_OF.get(dtype, dtype)
    return found


def current_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line with the options of today, and a warning for each old one.

    >>> current_options(["--dtype", "bfloat16", "--update.momentum=0"])[0]
    ['--precision', 'bf16', '--update.beta1=0']
    """
    found: list[str] = []
    warnings: list[str] = []
    for word in words:
        option, sign, value = word.partition("=")
        new = _OPTIONS.get(option)
        if new is not None:
            warnings.append(f"{option} is called {new} now.")
            found.append(new + sign + (_PRECISION_OF.get(value, value) if new == "--precision" else value))
        elif found and found[-1] == "--precision":
            found.append(_PRECISION_OF.get(word, word))
        else:
            found.append(word)
    return found, warnings
