"""Rules about hidden information: hidden facts stay hidden, and the anchor holds no turn counter."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from turngym.envs.checks.case import Case, Episode, begin, canonical, inner, step
from turngym.envs.checks.repeat import REUSABLE
from turngym.envs.checks.rule import Finding, Skipped, excerpts, rule
from turngym.envs.core import TextEnv
from turngym.errors import SnapshotUnsupported

_FIRST_OBSERVATIONS = 40
_NONSENSE = "\u2047 no such action \u2047"
_FEWEST_TURNS = 6
MOST_SWAPS = 100
"""Turns of an episode at which hidden facts are swapped: restoring may mean replaying the whole episode."""
_NUMBER = re.compile(r"\d+")
_TOLD = {"anchor": "anchor", "legal_actions": "legal_actions", "progress": "progress"}


@dataclass(slots=True)
class _Swaps:
    """Changes after swapping hidden facts for others consistent with the observations, by name."""

    count: int = 0
    found: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))


def swaps(case: Case) -> _Swaps:
    """Swap the hidden facts at up to ``MOST_SWAPS`` turns of each recorded episode, evenly spread over it.

    The results before and after are compared.

    Raises:
        Skipped: Nothing is hidden, or the environment does not declare what is.
    """
    if type(inner(case.env)).resample_hidden is TextEnv.resample_hidden:
        raise Skipped("not declared: without resample_hidden() hidden facts cannot be looked for")
    if "swaps" not in case.facts:
        found = _Swaps()
        for episode in case.recorded:
            _swap_in(case, episode, found)
        case.facts["swaps"] = found
    swapped: _Swaps = case.facts["swaps"]
    if not swapped.count:
        raise Skipped("nothing is hidden: resample_hidden() changed nothing")
    return swapped


def _swap_in(case: Case, episode: Episode, found: _Swaps) -> None:
    last = len(episode.actions) - episode.is_over
    places = {last * k // (MOST_SWAPS - 1) for k in range(MOST_SWAPS)}
    current = begin(case.env, episode.seed)
    for turn, action in enumerate([*episode.actions, None]):
        if turn in places and not current.is_over:
            _swap(case, current, found)
        if action is None or current.is_over:  # with other hidden facts the same actions may end it earlier
            break
        step(case.env, current, action)


def _told(case: Case) -> dict[str, Any]:
    env = inner(case.env)
    told = {key: env._info()[key] for key in _TOLD}
    if hasattr(env, "render_image") and "rgb_array" in env.metadata["render_modes"]:
        told["picture"] = env.render_image()
    return told


def _swap(case: Case, episode: Episode, found: _Swaps) -> None:
    env, turn = inner(case.env), len(episode.turns) - 1
    generator = env.np_random.bit_generator
    before, state = _told(case), generator.state
    answer, snapshot = _answer_to_nonsense(case)
    if snapshot is not None:
        env.restore(snapshot)
    is_swapped: bool | None = env.resample_hidden()
    if is_swapped is not None and not is_swapped:  # None: it lacks the return statement, and may have changed something
        return
    found.count += 1
    after = _told(case)
    for key, value in before.items():
        ours, theirs = canonical(value), canonical(after[key])
        if ours != theirs:
            what = f"{key} tells a hidden fact"
            found.found[key].append(Finding(what, episode.seed, turn, *excerpts(ours, theirs)))
    if snapshot is None:
        return
    generator.state = state
    swapped = env.snapshot()
    other, _ = _answer_to_nonsense(case)
    env.restore(swapped)
    if answer is not None and other is not None and answer != other:
        what = "the answer to a text that is no action tells a hidden fact"
        found.found["observation"].append(Finding(what, episode.seed, turn, *excerpts(answer, other)))


def _answer_to_nonsense(case: Case) -> tuple[str | None, bytes | None]:
    """Return the observation after an invalid action, None if it was accepted; and the anchor before it."""
    env = inner(case.env)
    try:
        snapshot = env.snapshot()
    except (SnapshotUnsupported, TypeError, ValueError):
        return None, None
    observation, _, _, _, info = env.step(_NONSENSE)
    return (None if info["action_is_valid"] else canonical(observation)), snapshot


_HIDDEN_WHY = "A policy reads it, so training rewards reading and not solving, and the result is worth nothing."
_AFTER = (*REUSABLE, "info-complete", "snapshot-json", "snapshot-generator", "snapshot-exact")


@rule(
    "hidden-in-observation",
    "No observation and no picture tells what the agent has not found out.",
    why=_HIDDEN_WHY,
    fix="Build texts and pictures from what has been revealed. Every hidden fact that fits all that was seen must "
    "give the same text; where a fact is told on purpose, add it to anchor() and keep it in resample_hidden.",
    after=_AFTER,
)
def hidden_in_observation(case: Case) -> Iterator[Finding]:
    """Neither the answer to an invalid action, nor the image, nor the first observation reveals hidden facts."""
    found = swaps(case).found
    yield from found["observation"][:1]
    yield from found["picture"][:1]
    yield from _first_observations(case)


def _first_observations(case: Case) -> Iterator[Finding]:
    """Where many tasks have the same anchor, the first observation must not distinguish them."""
    shown: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    examples: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for seed in range(case.seeds[0], case.seeds[0] + _FIRST_OBSERVATIONS):
        observation, info = case.env.reset(seed=seed)
        text = canonical(observation)
        shown[info["anchor"]][inner(case.env).instance].add(text)
        examples[info["anchor"]].append((seed, text))
    for anchor, tasks in shown.items():
        texts = {text for of_task in tasks.values() for text in of_task}
        if len(examples[anchor]) < 8 or len(tasks) < 2:
            continue
        if len(texts) == len(tasks) and all(len(of_task) == 1 for of_task in tasks.values()):
            (seed, one), (_, other) = next((a, b) for a in examples[anchor] for b in examples[anchor] if a[1] != b[1])
            what = f"{len(tasks)} tasks with the same anchor begin with {len(texts)} observations, one for each task"
            yield Finding(what, seed, 0, *excerpts(one, other))


def _hidden_in(key: str, case: Case) -> Iterator[Finding]:
    yield from swaps(case).found[key][:1]


@rule(
    "hidden-in-anchor",
    "The anchor holds nothing that the agent cannot know.",
    why="Turns are grouped by it: with a hidden fact inside, turns that look alike to the agent fall into different "
    "groups, and step advantages leak the secret.",
    fix="Write into anchor() only what the observations so far have told.",
    after=_AFTER,
)
def hidden_in_anchor(case: Case) -> Iterator[Finding]:
    """Changing hidden facts does not change the anchor."""
    yield from _hidden_in("anchor", case)


@rule(
    "hidden-in-legal-actions",
    "The list of legal actions is made from what the agent knows.",
    why="A list that leaves out what would fail tells where the treasure is, to every agent that sees or samples it.",
    fix="List an action as long as the agent cannot know better; let the rules answer it when it is tried.",
    after=_AFTER,
)
def hidden_in_legal_actions(case: Case) -> Iterator[Finding]:
    """Changing hidden facts does not change the list."""
    yield from _hidden_in("legal_actions", case)


@rule(
    "hidden-in-progress",
    "progress is computed from what the agent knows.",
    why="A progress reward that knows the answer is a compass: the policy learns to follow it, and fails without it.",
    fix="Measure what has been found out or done, such as the share of candidates that are ruled out.",
    after=_AFTER,
)
def hidden_in_progress(case: Case) -> Iterator[Finding]:
    """Changing hidden facts does not change the progress."""
    yield from _hidden_in("progress", case)


@rule(
    "anchor-timeless",
    "The anchor holds no turn counter.",
    why="With a counter inside, no two turns of a group ever share an anchor, and step groups are of one member each.",
    fix="Leave self.turn and all numbers that move once a turn out of anchor(); two ways to one place are one place.",
    after=_AFTER,
)
def anchor_timeless(case: Case) -> Iterator[Finding]:
    """The anchor contains neither the turn nor a number that changes by one every turn."""
    env = inner(case.env)
    begin(case.env, case.first.seed)
    before, turn = env._info()["anchor"], env.turn
    env.turn = turn + 1
    after = env._info()["anchor"]
    env.turn = turn
    if before != after:
        yield Finding("the anchor changes with self.turn alone", case.first.seed, 0, *excerpts(before, after))
        return
    counters: set[int] | None = None
    valid: set[bool] = set()
    turns = 0
    for episode in case.recorded:
        found, length = _counters(episode)
        counters = found if counters is None else counters & found
        turns += length
        valid |= {turn.info["action_is_valid"] for turn in episode.turns[1:]}
    if counters and turns >= _FEWEST_TURNS and valid == {True, False}:
        one, two = (case.first.turns[k].info["anchor"] for k in (0, min(1, len(case.first.turns) - 1)))
        what = "a number in the anchor moves by one in every turn, whatever is done"
        yield Finding(what, case.first.seed, 1, *excerpts(one, two))


def _counters(episode: Episode) -> tuple[set[int], int]:
    """Return the positions of numbers in the anchor that change by the same one every turn, and the number of turns."""
    running = episode.turns[: len(episode.turns) - episode.is_over]
    rows = [np.array([int(text[-18:]) for text in _NUMBER.findall(turn.info["anchor"])]) for turn in running]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1:
        return set(), 0
    steps = np.diff(np.stack(rows), axis=0)
    is_counter = (np.abs(steps) == 1).all(axis=0) & (steps == steps[0]).all(axis=0)
    return {int(place) for place in np.flatnonzero(is_counter)}, len(steps)
