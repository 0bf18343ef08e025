"""Players without skill on every environment, compared with random legal play.

``python benchmarks/studies/checks/no_skill.py`` plays every id that can be made on this machine, with equal seeds for
all players, and writes ``benchmarks/results/no_skill.json`` and ``no_skill.md``. None may do better than random legal
play: Holm's correction over all comparisons keeps the chance of a false alarm below 5 %. An environment in which one
does says why in :attr:`turngym.envs.core.TextEnv.beaten_by`, which its page shows.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import gymnasium
import numpy as np

from turngym.benchmarks.statistics.several_tests import holm
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.registration import specs
from turngym.envs.spaces import Unicode
from turngym.errors import ConfigError, TurngymError
from turngym.seeding import stream
from turngym.storage.files import write_atomic

LEVEL = 0.05
EPISODES, SECONDS = 200, 60.0
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
_RANDOM = "random legal"


def _random(seen: Seen) -> str:
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
    "winners' most frequent action": lambda seen: seen.favourite if seen.favourite in seen.legal else _random(seen),
    "empty answer": lambda seen: "<answer></answer>",
}


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


def _winners_of(env: gymnasium.Env[Any, str]) -> Winners:
    """Return actions of the episodes that the expert won, or else random play, among three."""
    expert: Player = lambda seen: str(env.get_wrapper_attr("expert_action")())  # noqa: E731
    for player in (expert, _random):
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
    winners, end = _winners_of(env), time.monotonic() + seconds
    names = [_RANDOM, *players]
    ended: dict[str, list[Ended]] = {name: [] for name in names}
    for seed in seeds:
        for name in names:
            ended[name].append(play(env, PLAYERS.get(name, _random), seed, winners))
        if time.monotonic() > end:
            break
    found = []
    for measure in ("success", "score"):
        theirs = [getattr(each, measure) for each in ended[_RANDOM]]
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


def study(env_ids: Sequence[str], episodes: int, seconds: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield id -> what was found there."""
    for env_id in env_ids:
        began = time.monotonic()
        try:
            env = gymnasium.make(env_id)
            with closing(env):
                found = compare_all(env, range(episodes), seconds)
                reasons = dict(explained(env))
        except (TurngymError, ImportError, OSError) as error:
            yield env_id, {"skipped": str(error)[:200]}
        else:
            rows = [each._asdict() for each in found]
            yield env_id, {"rows": rows, "explained": reasons, "seconds": round(time.monotonic() - began, 1)}
        print(env_id, round(time.monotonic() - began, 1), flush=True)


def _with_corrected(content: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Add Holm's corrected p-values over all comparisons."""
    rows = [row for one in content.values() for row in one.get("rows", ())]
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["corrected"] = p
    return content


def _better_than_random(content: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the comparisons that random play loses."""
    return [(env_id, row) for env_id, one in content.items() for row in one.get("rows", ()) if row["corrected"] < LEVEL]


def page(content: Mapping[str, Mapping[str, Any]], episodes: int) -> str:
    """Return the table as Markdown: each environment's best player without skill."""
    played = {env_id: one for env_id, one in content.items() if "rows" in one}
    lines = [
        "# Players without skill",
        "",
        f"{len(PLAYERS)} players without skill on {len(played)} environments, up to {episodes} equal seeds each: "
        f"{', '.join(PLAYERS)}. The table has the best of them by success, next to random legal play; the rest is in "
        "[no_skill.json](no_skill.json). `python benchmarks/studies/checks/no_skill.py` writes this page.",
        "",
        "| environment | seeds | random legal | best without skill | its success | smallest corrected p | why |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for env_id, one in played.items():
        rows = [row for row in one["rows"] if row["measure"] == "success"]
        best = max(rows, key=lambda row: row["mean"])
        worst = min(one["rows"], key=lambda row: row["corrected"])
        lines.append(
            f"| `{env_id}` | {best['episodes']} | {best['random']:.3f} | {best['player']} | {best['mean']:.3f} "
            f"| {worst['corrected']:.3f} | {' '.join(dict.fromkeys(one['explained'].values()))} |"
        )
    skipped = [f"- `{env_id}`: {one['skipped']}" for env_id, one in content.items() if "skipped" in one]
    return "\n".join([*lines, "", *(["Not played here:", "", *skipped] if skipped else [])]).rstrip() + "\n"


def main() -> int:
    """Play, write the figures, and return 1 if an exception is not explained."""
    parser = arguments(__doc__, "no_skill.json")
    parser.add_argument("ids", nargs="*", help="ids to play, all unless given; what is known of others stays")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit for one environment")
    given = parser.parse_args()
    env_ids = given.ids or sorted(env_id for env_id in specs() if env_id.startswith("turngym/"))
    known = json.loads(given.out.read_text("utf8"))["environments"] if given.ids and given.out.exists() else {}
    content = _with_corrected(dict(sorted({**known, **dict(study(env_ids, given.episodes, given.seconds))}.items())))
    unexplained = 0
    for env_id, row in _better_than_random(content):
        why = content[env_id]["explained"].get(row["player"], "")
        unexplained += not why
        print(f"{env_id}: {row['player']} {row['measure']} {row['mean']:.3f}, random {row['random']:.3f}: {why or '?'}")
    write_result(given.out, {"episodes": given.episodes, "environments": content}, "numpy")
    write_atomic(given.out.with_suffix(".md"), page(content, given.episodes))
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
