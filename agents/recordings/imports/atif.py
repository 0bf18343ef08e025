"""Trajectories in ATIF, versions 1.0 to 1.8: a file, or a folder of files. Copied context is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.agents.recordings.imports import IMPORTS, Content, Import, Log, LoggedEpisode, metric_of
from turngym.agents.usage import Usage
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError
from turngym.storage.bounded import read_json
from turngym.storage.folders import is_folder

CALL = "act"
"""Name of the call that stands for an action."""
OURS = "turngym"
"""Key under ``extra``."""
_MOST_FILES = 10_000
_LOOKED_AT = 4_096


def files_of(path: Path, pattern: str = "*.json") -> list[Path]:
    """Return the files of a folder in order, links left out, or a file itself.

    Raises:
        ConfigError: There are more than can be read.
    """
    if not is_folder(path):
        return [path]
    found = [each for each in sorted(path.glob(pattern)) if not each.is_symlink() and each.is_file()]
    if len(found) > _MOST_FILES:
        raise ConfigError(f"{path} has {len(found):,} files, more than the {_MOST_FILES:,} that are read.")
    return found


def _matches(path: Path) -> bool:
    first = next(iter(files_of(path)), None)
    if first is None or first.suffix != ".json" or not first.is_file():
        return False
    with first.open("rb") as file:
        return b'"ATIF-v' in file.read(_LOOKED_AT)


def _read(path: Path) -> Log:
    files = files_of(path)
    contents = [read_json(each) for each in files]
    episodes = [episode_of(content, each.stem) for content, each in zip(contents, files, strict=True)]
    first = contents[0]
    suite = _ours(first).get("suite", {})
    name, metric = str(suite.get("name", "ATIF")), metric_of(suite.get("metric"))
    return Log(str(first["agent"]["name"]), name, episodes, metric, int(suite.get("version", 0)))


def episode_of(content: Any, name: str, reward: float | None = None) -> LoggedEpisode:
    """Return a trajectory as an episode.

    Args:
        content: The trajectory.
        name: Name of the task, where the trajectory has none.
        reward: Reward of the whole episode, if it is known from elsewhere; success is a reward of at least 1.

    Raises:
        ConfigError: It is none, or its log-probabilities are not those of its tokens.
    """
    if not (isinstance(content, dict) and str(content.get("schema_version", "ATIF-v1.8")).startswith("ATIF-v1.")):
        raise ConfigError(f"{name} is not a trajectory of ATIF-v1.")
    turns, rules, last = _turns(content["steps"], name)
    ours = _ours(content)
    record, environment = ours.get("episode", {}), ours.get("environment", {})
    score = float(reward if reward is not None else record.get("score", 0.0))
    if turns and reward is not None and not ours:
        turns[-1]["reward"] = score
    return LoggedEpisode(
        f"{record['task']}" if "task" in record else name,
        turns,
        bool(record.get("success", score >= 1)),
        score,
        rules,
        last,
        _usage(content.get("final_metrics") or {}),
        str(record.get("fault", "")),
        str(environment.get("label", "tasks")),
        record,
        environment,
        reward is not None or "score" in record,
    )


def _ours(content: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = content.get("extra")
    found = extra.get(OURS) if isinstance(extra, dict) else None
    return found if isinstance(found, dict) else {}


def _turns(steps: Sequence[Mapping[str, Any]], name: str) -> tuple[list[Content], str, str]:
    """Return the turns, the rules, and what was seen last."""
    turns: list[Content] = []
    rules, seen = "", ""
    before: list[int] = []
    for step in steps:
        said = text_of(step.get("message"))
        if step.get("is_copied_context"):
            continue
        if step["source"] == "system":
            rules = rules or said
        elif step["source"] == "user":
            seen = f"{seen}\n\n{said}".strip() if seen else said
        elif step["source"] == "agent":
            turn = {**_turn(step, said), "observation": seen}
            turns.append({**turn, **_tokens(step.get("metrics") or {}, before, f"{name}, step {step.get('step_id')}")})
            observed = step.get("observation") or {}
            seen = "\n\n".join(text_of(each.get("content")) for each in observed.get("results", ()))
    return turns, rules, seen


def _turn(step: Mapping[str, Any], said: str) -> Content:
    ours = _ours(step)
    calls = step.get("tool_calls") or []
    actions = [
        str(call["arguments"].get("action", ""))
        if call["function_name"] == CALL and ours
        else write_call(call["function_name"], call["arguments"])
        for call in calls
    ]
    reasoning = step.get("reasoning_content")
    notes = ours.get("notes") or ([{"purpose": "reasoning", "text": str(reasoning)}] if reasoning else [])
    return {
        "completion": said,
        "action": "\n".join(actions) if actions else said,
        "reward": float(ours.get("reward", 0.0)),
        "action_is_valid": ours.get("action_is_valid") is not False,
        **({"notes": notes} if notes else {}),
    }


def _tokens(metrics: Mapping[str, Any], before: list[int], place: str) -> Content:
    """Return the tokens of a step as transcripts have them, and replace ``before`` by all that it read and wrote."""
    ids, logprobs = metrics.get("completion_token_ids") or [], metrics.get("logprobs") or []
    prompt = metrics.get("prompt_token_ids") or []
    if not all(type(each) is int and each >= 0 for each in (*ids, *prompt)):
        raise ConfigError(f"{place}: token ids must be whole numbers of at least 0.")
    if logprobs and ids and len(logprobs) != len(ids):
        raise ConfigError(f"{place}: there are {len(logprobs)} log-probabilities for {len(ids)} tokens.")
    if not all(isinstance(each, int | float) and math.isfinite(each) for each in logprobs):
        raise ConfigError(f"{place}: log-probabilities must be finite numbers.")
    if not ids:
        before.clear()
        return {}
    continues = bool(before) and prompt[: len(before)] == before
    found = {
        "prompt_ids": prompt[len(before) :] if continues else prompt,
        **({"prompt_ids_continue": True} if continues else {}),
        "completion_ids": ids,
        "completion_logprobs": logprobs,
    }
    before[:] = [*prompt, *ids]
    return found


def _usage(told: Mapping[str, Any]) -> Usage:
    counts = [told.get(f"total_{name}_tokens") or 0 for name in ("prompt", "completion", "cached")]
    cost = told.get("total_cost_usd")
    return Usage(
        int(counts[0]), int(counts[1]), tokens_cached=int(counts[2]), cost=None if cost is None else float(cost)
    )


def text_of(content: Any) -> str:
    r"""Return the text of a message: as it is, or of its parts, with a word for each picture.

    >>> text_of([{"type": "text", "text": "look"}, {"type": "image", "source": {}}])
    'look\n[image]'
    """
    if isinstance(content, list):
        parts = [each for each in content if isinstance(each, dict)]
        texts = [str(each["text"]) if "text" in each else f"[{each.get('type', 'part')}]" for each in parts]
        return "\n".join(texts)
    return "" if content is None else str(content)


IMPORTS.register("atif")(Import(_matches, _read))
