"""The table of the worlds of work, from the figures of ``worlds.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_WHOLE = 100
"""Steps a second from which on no decimals are shown."""
_HEAD = """# Worlds of work

`python benchmarks/studies/checks/worlds.py` plays them and writes this table, with `--table` from the
[figures](worlds.json) alone. Figures are of the test split.

- Expert, random play: solved episodes, in per cent with Wilson's 95 % intervals. The expert sees only what agents see,
  but knows the map in MiniHack and Crafter. An episode that it does not solve may have no solution.
- Instances: how many there are at least, by the equal pairs among some draws (95 %).
- Snapshots: turns of the expert's episodes from which another environment continued equally, and not.
- Equal runs: how many of five processes with other locales, time zones and seeds of hashes showed the same, byte by
  byte, to the expert and, outside of sandboxes, to random players: programs in a pipe may write in either order.
- Without skill: the best of thirteen players that never read what they see ([all of them](no_skill.md)).
- Steps of the expert in a second of the processor (by the clock), resets included: in the test split each draws ten
  instances, in training 1.25. Load: of two cores meanwhile.

"""
_COLUMNS = (
    *("world", "expert", "random play", "instances", "snapshots, of episodes", "equal runs, of episodes"),
    *("without skill", "steps/s, test", "steps/s, training", "load"),
)


def page(worlds: Mapping[str, Mapping[str, Any]], players: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table as Markdown.

    Args:
        worlds: Id, with options in JSON where it has some -> figures.
        players: Id -> what players without skill reached there.

    >>> print(page({"turngym/Ask-v0": {"expert": {"episodes": 4, "success": 1.0, "low": 0.51, "high": 1.0}}}, {}))
    ... # doctest: +ELLIPSIS
    # Worlds of work
    ...
    | `Ask-v0` | 4 of 4 [51.0, 100.0] |...
    <BLANKLINE>
    """
    rows: list[Sequence[str]] = [_COLUMNS, ["---"] * len(_COLUMNS)]
    rows += [list(_cells(name, found, players.get(name, {}))) for name, found in worlds.items()]
    return _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(name: str, found: Mapping[str, Any], players: Mapping[str, Any]) -> Iterator[str]:
    yield f"`{name.removeprefix('turngym/')}`"
    for player in ("expert", "random"):
        yield _share(found[player]) if player in found else ""
    yield f"{found['instances']['least_at_95_percent']:,}" if "instances" in found else ""
    restored = found.get("restored")
    yield f"{restored['equal']:,}, {restored['unequal']}; {restored['episodes']}" if restored else ""
    equal = found.get("repeated")
    yield f"{equal['equal']} of {equal['runs']}; {equal['episodes']}" if equal else ""
    rows = [row for row in players.get("rows", ()) if row["measure"] == "success"]
    best = max(rows, key=lambda row: float(row["mean"]), default=None)
    yield f"{100 * best['mean']:.1f} % of {best['episodes']}" if best else ""
    timed = [found[split] for split in ("expert", "training") if "steps_per_second" in found.get(split, {})]
    yield from ([_rates(each) for each in timed] + ["", ""])[:2]
    yield f"{max(each['load'] for each in timed):.0f}" if timed else ""


def _rates(played: Mapping[str, Any]) -> str:
    processor, clock = (played.get(key) for key in ("steps_per_cpu_second", "steps_per_second"))
    return f"{'' if processor is None else _rate(processor)} ({_rate(clock)})".strip()


def _rate(steps: float | None) -> str:
    return "" if steps is None else f"{steps:,.0f}" if steps >= _WHOLE else f"{steps:.1f}"


def _share(played: Mapping[str, Any]) -> str:
    count = played["episodes"]
    solved, low, high = round(played["success"] * count), abs(100 * played["low"]), 100 * played["high"]
    return f"{solved} of {count} [{low:.1f}, {high:.1f}]"
