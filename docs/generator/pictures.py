"""Draw the pictures of the README, the home page and the tutorial: ``python docs/generator/pictures.py [--check]``.

The episode is played by the environment itself; the charts show recorded results of ``benchmarks/results``.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from stale import stale

import turngym

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "docs" / "assets"
RESULTS = ROOT / "benchmarks" / "results"
BACK, TEXT, QUIET, BLUE, ORANGE, GREY, PALE = (
    "#232838",
    "#f2f4fb",
    "#aeb5cc",
    "#7f9cf5",
    "#f6ad55",
    "#4a5270",
    "#8a93b5",
)
CELL, LEFT, TOP, SECONDS = 34, 24, 24, 1.0


class Bar(NamedTuple):
    """One bar of a chart: its label, length, interval and colour."""

    label: str
    value: float
    low: float = float("nan")
    high: float = float("nan")
    colour: str = BLUE


def svg(width: int, height: int, title: str, body: str, style: str = "") -> str:
    """Return a whole picture on a card that suits light and dark pages."""
    css = f"<style>{style}</style>" if style else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="Helvetica,Arial,sans-serif" font-size="14" fill="{TEXT}"><title>{escape(title)}</title>{css}'
        f'<rect width="{width}" height="{height}" rx="10" fill="{BACK}"/>\n{body}</svg>\n'
    )


def text(x: float, y: float, words: str, attributes: str = "") -> str:
    """Return a line of text, its spaces kept."""
    return f'<text x="{x:g}" y="{y:g}" xml:space="preserve" {attributes}>{escape(words)}</text>\n'


def episode() -> str:
    """Draw an episode of Sokoban: the room moves, and next to it the conversation of each turn."""
    [played] = turngym.rollout("turngym/Sokoban-v0", "expert", episodes=1, seed=1)
    rooms = [turn.observation for turn in played.turns] + [played.final_observation]
    captions = [f"action: {turn.action}" for turn in played.turns] + [
        f"success {played.success}, score {played.score:g}"
    ]
    rewards = [0.0, *(turn.reward for turn in played.turns)]
    grids = [[line for line in room.splitlines() if line.startswith("#")] for room in rooms]
    length, total = len(grids), SECONDS * (len(grids) + 1)
    style = f".f{{visibility:hidden;animation:f {total:g}s step-end infinite}}.f:last-of-type{{visibility:visible}}"
    style += f"@keyframes f{{0%{{visibility:visible}}{100 / (length + 1):.3f}%{{visibility:hidden}}}}"
    style += f"@keyframes l{{0%{{visibility:visible}}{200 / (length + 1):.3f}%{{visibility:hidden}}}}"
    style += "@media (prefers-reduced-motion){.f,.m{animation:none!important}}"
    body = walls(grids[0])
    for name, symbols, draw in (("box", "X√", box), ("player", "PS", player)):
        places = [place(grid, symbols) for grid in grids]
        style += moves(name, places, total)
        x, y = places[-1]
        body += (
            f'<g class="m" style="animation:{name} {total:g}s infinite;transform:translate({x}px,{y}px)">{draw()}</g>\n'
        )
    right = LEFT * 2 + CELL * len(grids[0][0]) + 16
    for index, (room, caption) in enumerate(zip(grids, captions, strict=True)):
        lines = text(
            right, TOP + 14, f"turn {index + 1}" if index + 1 < length else "end of the episode", f'fill="{QUIET}"'
        )
        for row, line in enumerate(room):
            lines += text(right, TOP + 44 + 20 * row, line, 'font-family="monospace" font-size="16"')
        lines += text(right + 130, TOP + 44, f"reward {rewards[index]:+.1f}" if index else "reset", f'fill="{QUIET}"')
        lines += text(right, TOP + 186, caption, f'font-size="18" font-weight="bold" fill="{ORANGE}"')
        name = "animation-name:l;" if index + 1 == length else ""
        body += f'<g class="f" style="{name}animation-delay:{(index - length - 1) * SECONDS:g}s">{lines}</g>\n'
    return svg(right + 260, 2 * TOP + CELL * len(grids[0]), "An episode of Sokoban, turn by turn", body, style)


def walls(grid: Sequence[str]) -> str:
    """Draw what does not move: walls and goals."""
    cells = ((x, y, symbol) for y, line in enumerate(grid) for x, symbol in enumerate(line))
    found = ""
    for x, y, symbol in cells:
        left, top = LEFT + x * CELL, TOP + y * CELL
        if symbol == "#":
            found += f'<rect x="{left}" y="{top}" width="{CELL - 1}" height="{CELL - 1}" rx="3" fill="{GREY}"/>'
        elif symbol in "OS√":
            centre = f'cx="{left + CELL / 2:g}" cy="{top + CELL / 2:g}"'
            found += f'<circle {centre} r="7" fill="none" stroke="{ORANGE}" stroke-width="3"/>'
    return found + "\n"


def box() -> str:
    """Draw a box at the origin."""
    return f'<rect x="4" y="4" width="{CELL - 9}" height="{CELL - 9}" rx="3" fill="{ORANGE}"/>'


def player() -> str:
    """Draw the player at the origin."""
    return f'<circle cx="{CELL / 2 - 0.5:g}" cy="{CELL / 2 - 0.5:g}" r="11" fill="{BLUE}"/>'


def place(grid: Sequence[str], symbols: str) -> tuple[int, int]:
    """Return where the first of some symbols is drawn."""
    [(x, y)] = [(x, y) for y, line in enumerate(grid) for x, symbol in enumerate(line) if symbol in symbols]
    return LEFT + x * CELL, TOP + y * CELL


def moves(name: str, places: Sequence[tuple[int, int]], total: float) -> str:
    """Return the key frames of one that walks from place to place and rests at the last."""
    share = 100 * SECONDS / total
    frames = ""
    for index, (x, y) in enumerate([*places, places[-1]]):
        frames += f"{index * share:.2f}%,{(index + 0.7) * share:.2f}%{{transform:translate({x}px,{y}px)}}"
    return f"@keyframes {name}{{{frames}}}"


def bars(title: str, rows: Sequence[Bar], note: str, unit: str = " %", most: float = 100.0) -> str:
    """Draw bars, each with its number and, where it is known, its interval."""
    start, width, step = 190, 300, 34
    body = text(24, 34, title, 'font-size="16" font-weight="bold"')
    for index, bar in enumerate(rows):
        y, scale = 54 + index * step, width / most
        body += text(start - 12, y + 15, bar.label, 'text-anchor="end"')
        body += f'<rect x="{start}" y="{y}" width="{width}" height="20" rx="3" fill="{GREY}" opacity="0.4"/>'
        body += f'<rect x="{start}" y="{y}" width="{bar.value * scale:.1f}" height="20" rx="3" fill="{bar.colour}"/>'
        if bar.low == bar.low:
            low, high = start + bar.low * scale, start + bar.high * scale
            line = f"M{low:.1f} {y + 10}H{high:.1f}M{low:.1f} {y + 6}v8M{high:.1f} {y + 6}v8"
            body += f'<path d="{line}" stroke="{TEXT}" stroke-width="1.5"/>'
        body += text(start + width + 14, y + 15, f"{bar.value:.1f}{unit}", 'font-weight="bold"')
    return svg(
        580,
        84 + len(rows) * step,
        title,
        body + text(24, 66 + len(rows) * step, note, f'fill="{QUIET}" font-size="12"'),
    )


def recorded(name: str) -> Any:
    """Read a file of results."""
    return json.loads((RESULTS / name).read_text("utf8"))


def training() -> str:
    """Draw the quickstart's success, over ten seeds."""
    runs = recorded("quickstart.json")["runs"].values()
    rows = []
    for stage, label, colour in (
        ("warmup", "30 demonstrations", PALE),
        ("control", "more imitation", ORANGE),
        ("final", "trained by reward", BLUE),
    ):
        values = [100 * run["evaluations"][f"{stage}-sampled"]["success"]["value"] for run in runs]
        rows.append(Bar(label, statistics.mean(values), min(values), max(values), colour))
    return bars(
        "Success on 300 unseen lakes", rows, f"Mean and range of {len(values)} seeds, 0.3 M parameters, sampled actions"
    )


def stragglers() -> str:
    """Draw the throughput where some steps never return."""
    found = recorded("stragglers.json")["2 % hang"]
    processes = found["backends"]["process"]
    rows = [
        Bar("first ready", 100 * processes["first_ready_share"]),
        Bar("lock-step", 100 * processes["lockstep_share"], colour=PALE),
    ]
    return bars("Throughput where 2 % of steps never return", rows, "64 slots in processes, share of the ideal")


def trl() -> str:
    """Draw how long an iteration of training takes, next to TRL."""
    cells = recorded("training_vs_trl.json")["cells"]
    rows = []
    for turns in (5, 10, 20):
        sides = cells[f"SmolLM2 {turns}"]["sides"]
        rows.append(Bar(f"{turns} turns, turngym", sides["turngym"]["iteration_seconds"]))
        rows.append(Bar("TRL", sides["trl"]["iteration_seconds"], colour=PALE))
    most = max(bar.value for bar in rows)
    return bars(
        "Seconds of a training iteration, SmolLM2-135M",
        rows,
        "The same episodes and updates, one CPU thread, float32",
        " s",
        most,
    )


def evaluation() -> str:
    """Draw the two evaluations of the tutorial, which are played here."""
    rows = []
    for agent, colour in (("expert", BLUE), ("random", PALE)):
        found = turngym.evaluate("turngym/FrozenLake-v0", agent, episodes=40).mean
        rows.append(Bar(agent, 100 * found.value, 100 * found.low, 100 * found.high, colour))
    return bars("Success on FrozenLake", rows, "Mean and 95 % interval, 40 episodes each")


def leaderboard() -> str:
    """Draw the rows of turngym-core's leaderboard."""
    found = recorded("turngym-core.json")
    rows = []
    for agent, colour in (("expert", BLUE), ("random", PALE)):
        mean = found["rows"][agent]["mean"]
        rows.append(Bar(agent, 100 * mean["value"], 100 * mean["ci_low"], 100 * mean["ci_high"], colour))
    count = len(found["environments"])
    note = f"Mean of {count} environments and 95 % interval, {mean['n_games']} tasks, version {found['version']}"
    return bars(f"Leaderboard of {found['suite']}, success", rows, note)


PICTURES: dict[str, Callable[[], str]] = {
    "episode.svg": episode,
    "training.svg": training,
    "stragglers.svg": stragglers,
    "trl.svg": trl,
    "evaluation.svg": evaluation,
    "leaderboard.svg": leaderboard,
}


def main(arguments: Sequence[str]) -> int:
    """Draw the pictures, or print which are not up to date."""
    texts = {ASSETS / name: draw() for name, draw in PICTURES.items()}
    if "--check" in arguments:
        return stale(texts, "docs/generator/pictures.py")
    for path, drawn in texts.items():
        path.write_text(drawn, "utf8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
