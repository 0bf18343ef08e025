"""Whole trajectories for reading: prompts, sampled tokens, their log-probabilities and advantages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from turngym.agents.episodes.evaluate import record_of
from turngym.agents.episodes.self_play import CALLER, CALLER_TURN
from turngym.agents.trajectory import Trajectory, Turn
from turngym.text import valid_text
from turngym.trainers.core.turn_table import usable

Decode: TypeAlias = Callable[[Sequence[int]], str]
"""From token ids to their text, special tokens included."""
_LONGEST_TRANSCRIPT = 20_000
_MOST_IMAGES = 8


def sample_of(
    trajectory: Trajectory, decode: Decode | None = None, advantages: Sequence[Sequence[float]] | None = None
) -> dict[str, Any]:
    """Return a trajectory with everything worth reading.

    A prompt that starts with the whole previous turn is stored as the difference (``prompt_continues``), so that a
    conversation is written once.

    Args:
        trajectory: The trajectory.
        decode: Converts token ids to text; without it, prompts and tokens are left out.
        advantages: Advantages of the sampled tokens of each turn, if trained on.
    """
    turns = []
    before: tuple[int, ...] = ()
    for index, turn in enumerate(trajectory.turns):
        record: dict[str, Any] = {
            "observation": turn.observation,
            "completion": turn.completion,
            "action": turn.action,
            "reward": turn.reward,
            "action_is_valid": turn.action_is_valid,
            "logprobs": list(turn.logprobs),
        }
        if turn.pictures:
            record["images"] = turn.image_hashes
        if decode is not None and turn.completion_ids:
            record.update(_texts(turn, before, decode))
            before = turn.prompt_ids + turn.completion_ids
        if advantages is not None:
            record["advantages"] = [float(f"{value:.6g}") for value in advantages[index]]
        turns.append(record)
    whole = {**record_of(trajectory), "turns": turns, "final_observation": trajectory.final_observation}
    if trajectory.instructions:
        whole["instructions"] = trajectory.instructions
    if trajectory.policy:  # a seat of a game
        whole |= {"agent": trajectory.turns[0].agent if turns else "", "role": trajectory.role}
        whole["episode"] = trajectory.spec.episode
        for column in (CALLER, CALLER_TURN):  # of a sub-agent
            if column in trajectory.columns:
                whole[column] = int(trajectory.columns[column])
    return whole


def transcript_of(trajectory: Trajectory) -> str:
    """Return an episode as text for a tracker: its result, then observation and completion of each turn.

    >>> from turngym.agents.trajectory import EpisodeSpec
    >>> turns = [Turn("Guess a number.", "", "4", "<action>4</action>", reward=1.0)]
    >>> print(transcript_of(Trajectory(EpisodeSpec(0, 7), "turngym/GuessTheNumber-v0", turns=turns, success=1)))
    turngym/GuessTheNumber-v0, seed 7: solved, return 1, turns 1
    <BLANKLINE>
    [turn 1] Guess a number.
    [completion, reward 1] <action>4</action>
    """
    end = "broken" if trajectory.fault else {1: "solved", 0: "not solved"}.get(trajectory.success, "unfinished")
    lines = [
        f"{trajectory.env_id}, seed {trajectory.spec.seed}: {end}, return {trajectory.reward_sum:g}, "
        f"turns {len(trajectory.turns)}"
    ]
    for number, turn in enumerate(trajectory.turns, 1):
        lines += ["", f"[turn {number}] {turn.observation}"]
        lines.append(f"[completion, reward {turn.reward:g}] {turn.completion or turn.action}")
    if trajectory.final_observation:
        lines += ["", f"[end] {trajectory.final_observation}"]
    return valid_text("\n".join(lines))[:_LONGEST_TRANSCRIPT]


def images_of(trajectories: Sequence[Trajectory]) -> list[bytes]:
    """Return the newest image in the prompt of each of the first turns, of the first episode that has images."""
    for trajectory in trajectories:
        if found := [turn.pictures[-1] for turn in trajectory.turns if turn.pictures]:
            return found[:_MOST_IMAGES]
    return []


def _texts(turn: Turn, before: tuple[int, ...], decode: Decode) -> dict[str, Any]:
    continues = bool(before) and turn.prompt_ids[: len(before)] == before
    prompt = turn.prompt_ids[len(before) :] if continues else turn.prompt_ids
    found: dict[str, Any] = {"prompt": decode(prompt), "tokens": [decode([token]) for token in turn.completion_ids]}
    return {**found, "prompt_continues": True} if continues else found


def advantages_by_turn(
    trajectories: Sequence[Trajectory], flat: Sequence[float], trained: Sequence[Trajectory] | None = None
) -> list[list[list[float]] | None]:
    """Return for each trajectory, turn by turn, the advantage of each sampled token.

    Args:
        trajectories: All trajectories of an iteration.
        flat: Advantages in the order of their turn table.
        trained: Those of the trajectories that are in the table; every usable one unless given.

    Returns:
        None for a trajectory that was not trained on, and for all of them where ``flat`` is empty.

    >>> from turngym.agents.trajectory import EpisodeSpec
    >>> one = Trajectory(EpisodeSpec(0, 0), turns=[Turn("", "", "", logprobs=(0.0, 0.0)), Turn("", "", "")])
    >>> broken = Trajectory(EpisodeSpec(1, 0), fault="worker died", turns=[Turn("", "", "", logprobs=(0.0,))])
    >>> advantages_by_turn([broken, one], [0.5, -0.5])
    [None, [[0.5, -0.5], []]]
    """
    in_table = usable(trajectories) if trained is None else trained
    used = {id(trajectory) for trajectory in in_table} if len(flat) else set()
    found: list[list[list[float]] | None] = []
    start = 0
    for trajectory in trajectories:
        if id(trajectory) not in used:
            found.append(None)
            continue
        mine = []
        for turn in trajectory.turns:
            mine.append(list(flat[start : start + len(turn.logprobs)]))
            start += len(turn.logprobs)
        found.append(mine)
    return found
