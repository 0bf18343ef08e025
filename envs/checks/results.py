"""Rules about what ``reset`` and ``step`` return, judged on the recorded episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from turngym.columns import valid_columns
from turngym.envs.checks.case import LONGEST_EPISODE, Case, Episode, Turn, begin, canonical, is_wrapped, step
from turngym.envs.checks.repeat import REUSABLE
from turngym.envs.checks.rule import Finding, Skipped, difference, excerpts, rule
from turngym.errors import NotFinite
from turngym.types import INFO_TYPES, UNKNOWN

_ROUNDING = 1e-9


def _turns(case: Case, look: Callable[[Turn], Iterator[str]]) -> Iterator[Finding]:
    """Yield the findings for each turn of the recorded episodes."""
    for episode in case.recorded:
        for number, turn in enumerate(episode.turns):
            for seen in look(turn):
                yield Finding(seen, episode.seed, number)


def _is_over(turn: Turn) -> bool:
    return bool(turn.terminated or turn.truncated)


@rule(
    "info-complete",
    "Every info has every key of the table, each of its own type.",
    why="Vectors stack info into columns and trainers read it without asking; a key that comes and goes stops a run.",
    fix="Leave info to TextEnv and override anchor(), legal_actions(), progress() and score(); turngym.types.Info "
    "documents the table. Convert numbers of NumPy with int() and float().",
)
def info_complete(case: Case) -> Iterator[Finding]:
    """Every key, of its type, at every turn."""
    has_extras = is_wrapped(case.env)

    def look(turn: Turn) -> Iterator[str]:
        if not isinstance(turn.info, Mapping):
            yield f"info must be a dict, got {type(turn.info).__name__}"
            return
        missing = sorted(INFO_TYPES.keys() - turn.info.keys())
        extra = [] if has_extras else sorted(map(str, turn.info.keys() - INFO_TYPES.keys() - {"columns"}))
        if missing:
            yield f"info lacks {', '.join(missing)}"
        if extra:
            yield f"info must have the keys of the table and no others, got also {', '.join(extra)}"
        for key, kind in INFO_TYPES.items():
            if key in turn.info and type(turn.info[key]) is not kind and turn.info[key] is not UNKNOWN:
                yield f"info[{key!r}] must be {kind.__name__}, got {type(turn.info[key]).__name__}"
        if "columns" in turn.info:
            try:
                valid_columns(turn.info["columns"])
            except (TypeError, NotFinite) as error:
                yield str(error)
        legal = turn.info.get("legal_actions", ())
        if isinstance(legal, tuple) and not all(isinstance(action, str) for action in legal):
            yield f"every legal action must be a str, got {legal!r:.80}"

    yield from _turns(case, look)


@rule(
    "info-values",
    "success, progress, score, action_is_valid and fault say what the table documents.",
    why="success is what evaluation counts and progress what a progress reward pays: a wrong value is a wrong result.",
    fix="success is -1 while the episode runs and 0 or 1 after it; progress lies in [0, 1] or is nan; score is a "
    "finite number within score_range, which is (0.0, 1.0) unless the class sets another; action_is_valid is True "
    "after a reset; fault stays empty.",
    after=("info-complete",),
)
def info_values(case: Case) -> Iterator[Finding]:
    """Values in their ranges."""
    low, high = case.env.get_wrapper_attr("score_range")

    def look(turn: Turn) -> Iterator[str]:
        info = turn.info
        if info["success"] not in ((0, 1) if _is_over(turn) else (-1,)):
            expected = "0 or 1 after the episode" if _is_over(turn) else "-1 while the episode runs"
            yield f"success must be {expected}, got {info['success']!r}"
        if turn.truncated and not turn.terminated and info["success"] == 1:
            yield "an episode that is truncated is not solved, got success 1"
        if not (math.isnan(info["progress"]) or 0 <= info["progress"] <= 1):
            yield f"progress must be in [0, 1] or be nan, got {info['progress']!r}"
        if not math.isfinite(info["score"]):
            yield f"score must be a finite number, got {info['score']!r}"
        elif not low - _ROUNDING <= info["score"] <= high + _ROUNDING:
            yield f"score must be within score_range {low, high}, got {info['score']!r}"
        if turn.action is None and info["action_is_valid"] is not True:
            yield "action_is_valid must be True after a reset"
        if info["fault"]:
            yield f"fault must be empty in an environment that works, got {info['fault']!r}"

    yield from _turns(case, look)


@rule(
    "observation-in-space",
    "Every observation lies in the observation space.",
    why="Vectors, wrappers and prompts are built from the space; what lies outside of it breaks them later, elsewhere.",
    fix="Return a str from begin() and in every Outcome, or declare the space that you really return.",
)
def observation_in_space(case: Case) -> Iterator[Finding]:
    """Observations belong to the space."""
    space = case.env.observation_space

    def look(turn: Turn) -> Iterator[str]:
        if turn.observation not in space:
            yield f"the observation {turn.observation!r:.60} is not in {space}"

    yield from _turns(case, look)


@rule(
    "reward-finite",
    "Every reward is a finite float.",
    why="One nan or infinity among the rewards makes every weight of the policy nan in one update.",
    fix="Compute the reward of an Outcome from finite numbers; TextEnv turns it into a float.",
)
def reward_finite(case: Case) -> Iterator[Finding]:
    """Rewards are finite numbers."""

    def look(turn: Turn) -> Iterator[str]:
        if type(turn.reward) is not float or not math.isfinite(turn.reward):
            yield f"the reward must be a finite float, got {turn.reward!r}"

    yield from _turns(case, look)


@rule(
    "flags-exclusive",
    "terminated and truncated are bool and never both true.",
    why="After terminated the value is zero, after truncated it is bootstrapped: both at once means a wrong target.",
    fix="Say terminated=True in an Outcome where the rules end the episode, and leave the turn limit to TextEnv.",
)
def flags_exclusive(case: Case) -> Iterator[Finding]:
    """An episode is not both terminated and truncated."""

    def look(turn: Turn) -> Iterator[str]:
        if type(turn.terminated) is not bool or type(turn.truncated) is not bool:
            yield f"the flags must be bool, got {turn.terminated!r} and {turn.truncated!r}"
        elif turn.terminated and turn.truncated:
            yield "terminated and truncated are both True"

    yield from _turns(case, look)


@rule(
    "turn-limit",
    "An episode ends after at most max_turns turns.",
    why="A rollout of an endless episode never comes back, and its prompt outgrows the context.",
    fix="Do not set self.turn yourself and do not override step(): TextEnv counts the turns and truncates.",
)
def turn_limit_holds(case: Case) -> Iterator[Finding]:
    """Every episode ends within its turn limit."""
    limit = int(case.env.get_wrapper_attr("max_turns"))
    for episode in case.recorded:
        length = len(episode.turns) - 1
        if not episode.is_over and length >= limit:
            yield Finding(f"the episode continues after max_turns={limit} turns", episode.seed, length)
    if limit > LONGEST_EPISODE and not all(episode.is_over for episode in case.recorded):
        raise Skipped(f"max_turns={limit} is more than the {LONGEST_EPISODE} turns that are played here")


@rule(
    "legal-actions-valid",
    "Every action that is listed as legal is accepted, and nothing is legal after the end.",
    why="Random baselines, guided decoding and action masks choose from the list: a wrong entry makes them wrong.",
    fix="Build legal_actions() from the same rules as apply_action(), and return texts that it understands.",
    after=("info-complete",),
)
def legal_actions_valid(case: Case) -> Iterator[Finding]:
    """Listed actions are valid."""

    def look(turn: Turn) -> Iterator[str]:
        if turn.is_listed and turn.info["action_is_valid"] is not True:
            yield f"the legal action {turn.action!r} was answered as not valid"
        if _is_over(turn) and turn.info["legal_actions"]:
            yield f"{turn.info['legal_actions'][:3]!r} are legal after the end of the episode"

    yield from _turns(case, look)


@rule(
    "results-not-shared",
    "What reset and step returned never changes afterwards, and changing it changes nothing.",
    why="Rollouts keep observations and infos for the loss; if a later turn writes into them, the batch holds the last "
    "turn many times over.",
    fix="Make a new dict, list and array for every turn, and return no part of the state itself.",
    after=REUSABLE,
)
def results_not_shared(case: Case) -> Iterator[Finding]:
    """Returned objects are neither reused nor part of the environment's state."""
    for episode in case.recorded:
        yield from _changed_later(episode)
    original = case.first
    episode = begin(case.env, original.seed)
    for action in [None, *original.actions]:
        if action is not None:
            step(case.env, episode, action)
        _spoil(episode.turns[-1])
    yield from difference(
        "after the caller changed the observations and infos that it was given, the episode differs",
        original.texts,
        episode.texts,
        original.seed,
    )


def _changed_later(episode: Episode) -> Iterator[Finding]:
    for number, turn in enumerate(episode.turns):
        now = canonical(list(turn.returned))
        if now != turn.shown:
            what = "what a turn returned was changed by a later turn"
            yield Finding(what, episode.seed, number, *excerpts(turn.shown, now))
            return


def _spoil(turn: Turn) -> None:
    """Clear and overwrite returned objects, as a careless caller may."""
    for value in turn.returned:
        if isinstance(value, dict):
            for part in value.values():
                _overwrite(part)
            value.clear()
        else:
            _overwrite(value)


def _overwrite(value: Any) -> None:
    if isinstance(value, list):
        value.clear()
    elif hasattr(value, "fill") and getattr(getattr(value, "flags", None), "writeable", False):
        value.fill(0)
