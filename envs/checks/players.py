"""Players without skill, and how they compare with random legal play."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import gymnasium
import numpy as np

from turngym.envs.spaces import Unicode
from turngym.errors import ConfigError
from turngym.seeding import stream

LEVEL = 0.05
"""Chance of a false alarm over all comparisons."""
_SUCCESSES = ("success", "done", "I win", "You win!", "finished", "correct")


@dataclass
class Seen:
    """The information that a player without skill uses.

    Args:
        rules: The instructions.
        observation: The newest observation.
        legal: The legal actions.
        seed: Seed of the episode.
        turn: Number of the turn, from 0.
        longest: The longest text seen so far.
        won: The first action of an episode that an expert, or random play, won on another seed.
        favourite: The most frequent action of the episodes that an expert, or random play, won on other seeds.
    """

    rules: str
    observation: str
    legal: Sequence[str]
    seed: int
    turn: int = 0
    longest: str = ""
    won: str = ""
    favourite: str = ""


Player: TypeAlias = Callable[[Seen], str]
RANDOM = "random legal"
"""Name of random legal play."""


def random_legal(seen: Seen) -> str:
    """Return a random legal action, or random text where actions are not listed."""
    generator = stream("no skill", seen.seed, seen.turn)
    if not seen.legal:
        return Unicode(generator).sample()
    return seen.legal[int(generator.integers(len(seen.legal)))]


PLAYERS: Mapping[str, Player] = {
    "nothing": lambda seen: "",
    "one letter": lambda seen: chr(ord("a") + seen.seed % 26),
    "echo of the observation": lambda seen: seen.observation,
    "echo of the rules": lambda seen: seen.rules,
    "first legal": lambda seen: seen.legal[0] if seen.legal else "",
    "last legal": lambda seen: seen.legal[-1] if seen.legal else "",
    "alphabetically first": lambda seen: min(seen.legal, default=""),
    "alphabetically last": lambda seen: max(seen.legal, default=""),
    "longest text": lambda seen: seen.longest,
    "success texts": lambda seen: _SUCCESSES[seen.turn % len(_SUCCESSES)],
    "last winner's first action": lambda seen: seen.won,
    "winners' most frequent action": lambda seen: (
        seen.favourite if seen.favourite in seen.legal else random_legal(seen)
    ),
    "empty answer": lambda seen: "<answer></answer>",
}


def player_of(env: gymnasium.Env[Any, str], name: str) -> Player:
    """Return a player by name: one without skill, random legal play, or the environment's expert."""
    if name == "expert":
        return lambda seen: str(env.get_wrapper_attr("expert_action")())
    return PLAYERS.get(name, random_legal)


class Ended(NamedTuple):
    """The end of an episode."""

    success: float
    score: float
    actions: tuple[str, ...] = ()


class Winners(NamedTuple):
    """Actions of episodes that an expert, or random play, won; empty if neither did."""

    first: str = ""
    favourite: str = ""


def play(env: gymnasium.Env[Any, str], player: Player, seed: int, winners: Winners = Winners()) -> Ended:  # noqa: B008
    """Play one episode to its end."""
    observation, info = env.reset(seed=seed)
    rules = str(env.get_wrapper_attr("instructions"))
    seen = Seen(rules, _text(observation), info["legal_actions"], seed, won=winners.first, favourite=winners.favourite)
    seen.longest = max(seen.rules, seen.observation, key=len)
    actions, is_over = list[str](), False
    while not is_over:
        actions.append(player(seen))
        observation, _, terminated, truncated, info = env.step(actions[-1])
        is_over = terminated or truncated
        seen.observation, seen.legal, seen.turn = _text(observation), info["legal_actions"], seen.turn + 1
        seen.longest = max(seen.longest, seen.observation, key=len)
    return Ended(float(info["success"] == 1), float(info["score"]), tuple(actions))


def _text(observation: Any) -> str:
    return str(observation["text"] if isinstance(observation, Mapping) else observation)


def winners_of(env: gymnasium.Env[Any, str]) -> Winners:
    """Return actions of the episodes that the expert won, or else random play, among three."""
    for player in (player_of(env, "expert"), random_legal):
        try:
            ended = [play(env, player, seed) for seed in range(10**6, 10**6 + 3)]
        except ConfigError:  # no expert
            continue
        won = [each.actions for each in ended if each.success]
        if won:
            return Winners(won[0][0], Counter(itertools.chain.from_iterable(won)).most_common(1)[0][0])
    return Winners()


class Compared(NamedTuple):
    """A player against random legal play on equal seeds.

    Args:
        player: Name of the player.
        measure: ``success`` or ``score``.
        episodes: Number of seeds.
        mean: Its mean.
        random: The mean of random legal play.
        low: Lower end of the 95 % interval of the difference.
        high: Its upper end.
        p: One-sided p-value that the player is not better.
    """

    player: str
    measure: str
    episodes: int
    mean: float
    random: float
    low: float
    high: float
    p: float


def compared(player: str, measure: str, mine: Sequence[float], theirs: Sequence[float]) -> Compared:
    """Compare results on equal seeds, by the sign test on the seeds where they differ; McNemar's exact test for shares.

    >>> round(compared("a", "success", [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]).p, 5)
    0.03125
    """
    gaps = np.array(mine, float) - np.array(theirs, float)
    better, worse = int((gaps > 1e-12).sum()), int((gaps < -1e-12).sum())
    p = sum(math.comb(better + worse, k) for k in range(better, better + worse + 1)) / 2 ** (better + worse)
    half = 1.96 * float(gaps.std(ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else math.inf
    mean = float(gaps.mean())
    means = float(np.mean(mine)), float(np.mean(theirs))
    return Compared(player, measure, len(gaps), *means, mean - half, mean + half, p)


def compare_all(
    env: gymnasium.Env[Any, str],
    seeds: Sequence[int],
    seconds: float = math.inf,
    players: Sequence[str] = tuple(PLAYERS),
) -> list[Compared]:
    """Play players on the same seeds, as many as the time allows, and compare each with random legal play."""
    winners, end = winners_of(env), time.monotonic() + seconds
    names = [RANDOM, *players]
    ended: dict[str, list[Ended]] = {name: [] for name in names}
    for seed in seeds:
        for name in names:
            ended[name].append(play(env, PLAYERS.get(name, random_legal), seed, winners))
        if time.monotonic() > end:
            break
    found = []
    for measure in ("success", "score"):
        theirs = [getattr(each, measure) for each in ended[RANDOM]]
        for name in players:
            mine = [getattr(each, measure) for each in ended[name]]
            if measure == "success" or mine != [each.success for each in ended[name]]:
                found.append(compared(name, measure, mine, theirs))
    return found


def explained(env: gymnasium.Env[Any, str]) -> Mapping[str, str]:
    """Return the players that the environment says do better than random play, and why."""
    reasons: Mapping[str, str] = env.get_wrapper_attr("beaten_by")
    unknown = reasons.keys() - PLAYERS.keys()
    if unknown:
        raise ConfigError(f"beaten_by of {env} names {sorted(unknown)}, expected some of {sorted(PLAYERS)}.")
    return reasons
