"""Trajectories in ATIF-v1.8 (Agent Trajectory Interchange Format of Harbor): a folder with one file an episode.

The rules are a step of the system, the first observation is one of the user, and every turn is a step of the agent with
the call ``act``, whose result is the next observation. Token ids and log-probabilities stand in the metrics of a step
where they were recorded. Turngym's own record of the episode is under ``extra``, so that an import restores it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import turngym
from turngym.agents.recordings.imports.atif import CALL, OURS
from turngym.agents.recordings.submission import Submission
from turngym.benchmarks.exports import EXPORTS, digest, transcripts, write_episodes
from turngym.benchmarks.exports.source import Content, Source, plain, shown

VERSION = "ATIF-v1.8"


@EXPORTS.register("atif")
def export_atif(source: Source, out: Path) -> list[Path]:
    """Write a trajectory for each episode that has a turn.

    Args:
        source: Folder of an evaluation.
        out: A folder, absent or empty.

    Raises:
        ConfigError: It is something else, or the evaluation has no transcripts.
    """
    found = trajectories(source.submission)
    return write_episodes(
        out, ((f"{name}.json", json.dumps(each, ensure_ascii=False, allow_nan=False, indent=1)) for name, each in found)
    )


def trajectories(submission: Submission) -> Iterator[tuple[str, Content]]:
    """Yield a name and the trajectory of each episode that has a turn.

    Raises:
        ConfigError: There are no transcripts.
    """
    for name, environment, row, transcript in transcripts(submission):
        yield name, _trajectory(submission, environment, row, transcript, name)


def _trajectory(
    submission: Submission,
    environment: Mapping[str, Any],
    row: Mapping[str, Any],
    transcript: Mapping[str, Any],
    name: str,
) -> Content:
    used = row["seats"].get("player_0", {})
    about = {key: environment[key] for key in ("label", "env", "options", "wrappers", "ruleset_hash")}
    record = {key: value for key, value in row.items() if key not in ("actions", "options")}
    totals = {
        "total_prompt_tokens": used.get("tokens_in"),
        "total_completion_tokens": used.get("tokens_out"),
        "total_cached_tokens": used.get("tokens_cached"),
        "total_cost_usd": used.get("cost"),
    }
    steps = list(_steps(transcript))
    agent = plain(submission.config["agent"])
    return {
        "schema_version": VERSION,
        "session_id": digest([submission.config, submission.metadata])[:22],
        "trajectory_id": name,
        "agent": {"name": plain(submission.metadata["name"]), "version": turngym.__version__, "model_name": agent},
        "steps": steps,
        "final_metrics": {key: value for key, value in totals.items() if value is not None}
        | {"total_steps": len(steps)},
        "extra": {OURS: {"suite": submission.config["suite"], "environment": about, "episode": record}},
    }


def _steps(transcript: Mapping[str, Any]) -> Iterator[Content]:
    turns: Sequence[Mapping[str, Any]] = transcript["turns"]
    number = 1
    if rules := plain(transcript.get("instructions") or ""):
        yield {"step_id": number, "source": "system", "message": rules}
        number += 1
    yield {"step_id": number, "source": "user", "message": shown(turns[0]["observation"])}
    following = [*(turn["observation"] for turn in turns[1:]), transcript.get("final_observation") or ""]
    before: list[int] = []
    for turn, seen in zip(turns, following, strict=True):
        number += 1
        prompt = [*before, *turn.get("prompt_ids", ())] if turn.get("prompt_ids_continue") else turn.get("prompt_ids")
        yield _step(number, turn, shown(seen), prompt)
        before = [*(prompt or ()), *turn.get("completion_ids", ())]


def _step(number: int, turn: Mapping[str, Any], seen: str, prompt: Sequence[int] | None) -> Content:
    """Return the step of a turn; one that no model wrote has no calls of a model."""
    call = {"tool_call_id": f"call_{number}", "function_name": CALL, "arguments": {"action": plain(turn["action"])}}
    extra: Content = {"reward": turn["reward"], "action_is_valid": turn["action_is_valid"]}
    extra |= {"notes": turn["notes"]} if "notes" in turn else {}
    step: Content = {
        "step_id": number,
        "source": "agent",
        "message": plain(turn["completion"]),
        "tool_calls": [call],
        "observation": {"results": [{"source_call_id": f"call_{number}", "content": seen}]},
    }
    if turn["completion"]:
        step["llm_call_count"] = 1 + sum(note["purpose"] != "reasoning" for note in turn.get("notes", ()))
        if turn.get("completion_ids"):
            step["metrics"] = {
                "prompt_tokens": len(prompt or ()),
                "completion_tokens": len(turn["completion_ids"]),
                "prompt_token_ids": list(prompt or ()),
                "completion_token_ids": list(turn["completion_ids"]),
                **({"logprobs": list(turn["completion_logprobs"])} if turn.get("completion_logprobs") else {}),
            }
    else:
        step["llm_call_count"] = 0
    return {**step, "extra": {OURS: extra}}
