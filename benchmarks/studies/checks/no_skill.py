"""Players without skill on every environment, compared with random legal play.

``python benchmarks/studies/checks/no_skill.py`` plays every id that can be made on this machine, with equal seeds for
all players, and writes ``benchmarks/results/no_skill.json`` and ``no_skill.md``. None may do better than random legal
play: Holm's correction over all comparisons keeps the chance of a false alarm below 5 %. An environment in which one
does says why in :attr:`turngym.envs.core.TextEnv.beaten_by`, which its page shows.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import gymnasium

from turngym.benchmarks.statistics.several_tests import holm
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.checks.players import LEVEL, PLAYERS, compare_all, explained
from turngym.envs.registration import specs
from turngym.errors import TurngymError
from turngym.storage.files import write_atomic

EPISODES, SECONDS = 200, 60.0


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
