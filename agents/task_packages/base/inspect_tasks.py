"""Tasks of Inspect AI: ``FILE.py@TASK`` or ``PACKAGE/TASK``, with ``#SCORER`` or ``#SCORER.KEY`` of several scores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PACKAGE = "inspect_ai"
_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Values of the texts that Inspect counts as numbers."""


def tasks(name: str, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield id and input of each sample."""
    for place, sample in enumerate(_task(name, options).dataset, 1):
        text = sample.input
        if not isinstance(text, str):
            text = "\n\n".join(message.text for message in text)
        yield _id(sample, place), text


def play(name: str, task: str, options: dict[str, Any], model: Mapping[str, str]) -> float:
    """Play a sample once, and return its score."""
    found = _task(name, options)
    for place, sample in enumerate(found.dataset, 1):
        sample.id = _id(sample, place)
    found.dataset = found.dataset.filter(lambda sample: sample.id == task)  # sample_id=[task] takes a pattern
    from inspect_ai import eval as evaluate
    from inspect_ai.model import get_model

    served = get_model(
        f"openai-api/turngym/{model['name']}", base_url=model["base_url"], api_key=model["api_key"], responses_api=False
    )
    (log,) = evaluate(
        found,
        model=served,
        epochs=1,
        fail_on_error=True,
        retry_on_error=0,
        log_dir=model["folder"],
        log_realtime=False,
        display="none",
    )
    if log.status != "success" or not log.samples:
        why = log.error.message if log.error is not None else log.status
        raise RuntimeError(f"{name} failed in the sample {task}: {why}")
    return _score(name, log.samples[0].scores or {})


def _id(sample: Any, place: int) -> str:
    return str(place if sample.id is None else sample.id)


def _task(name: str, options: dict[str, Any]) -> Any:
    """Return the task of that name."""
    import inspect_ai  # noqa: F401  # missing, it is reported as such
    from inspect_ai._eval.loader import load_tasks

    spec = name.partition("#")[0]
    file, sign, task = spec.rpartition("@")
    if sign:
        _require_task(file, task)
    elif spec.endswith(".py") or os.path.exists(spec):
        raise SystemExit(f"{spec} names no task of the file: pass {spec}@TASK.")
    found = load_tasks([spec], options)
    if len(found) != 1:
        raise SystemExit(f"{spec} is {len(found)} tasks, expected one: pass FILE.py@TASK or PACKAGE/TASK.")
    return found[0]


def _require_task(file: str, task: str) -> None:
    from inspect_ai import list_tasks

    if not os.path.isfile(file):
        raise SystemExit(f"there is no file {file}: pass FILE.py@TASK with the path of a file of tasks.")
    place = Path(file).absolute()
    known = [each.name for each in list_tasks(place.name, root_dir=place.parent)]
    if task not in known:
        names = ", ".join(known[:20]) or "none"
        raise SystemExit(f"{file} has no task {task!r}; its tasks are: {names}.")


def _score(name: str, scores: Mapping[str, Any]) -> float:
    """Return the number of the scorer that is named, or of the only one."""
    values: dict[str, Any] = {}
    for scorer, score in scores.items():
        many = score.value if isinstance(score.value, dict) else None
        values.update({f"{scorer}.{key}": value for key, value in many.items()} if many else {scorer: score.value})
    wanted = name.partition("#")[2]
    if not wanted and len(values) != 1:
        shown = ", ".join(list(values)[:20]) or "none"
        raise SystemExit(f"{name} has {len(values)} scores ({shown}), and the reward is one: pass {name}#NAME.")
    if wanted and wanted not in values:
        raise SystemExit(f"{name} names a score that there is not; the scores are: {', '.join(list(values)[:20])}.")
    value = values[wanted] if wanted else next(iter(values.values()))
    number = _number(value)
    if number is None:
        raise SystemExit(
            f"the scorer of {name} gives {str(value)[:60]!r}, and a reward is a number, a bool, C, P, I or N: use a "
            "scorer that gives one of these, or name one that does as TASK#SCORER."
        )
    return number


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, int, float)):
        return float(value)
    if isinstance(value, str):
        word = _WORDS.get(value, _WORDS.get(value.lower()))
        if word is not None:
            return word
        try:
            return float(value)
        except ValueError:
            return None
    return None
