"""Learning results of each training method: runs on frozen lakes and of 40,000 turns, and tested claims of papers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from statistics import fmean
from typing import Any

from turngym.benchmarks.studies.harness import RESULTS

CLAIMS, CURVES = "../../benchmarks/results/claims.md", "../../benchmarks/results/methods.md"
_NAMES = {"rebn": "reinforce"}


def _runs(file: str = "curves.json") -> Mapping[str, Any]:
    runs: Mapping[str, Any] = json.loads((RESULTS / file).read_text("utf8"))["runs"]
    return runs


def _lakes(*runs: Mapping[str, Any]) -> str:
    """Return mean success before and after training on FrozenLake."""
    keys = ("warmup-sampled", "final-sampled")
    before, after = (100 * fmean(run["evaluations"][key]["success"]["value"] for run in runs) for key in keys)
    return f"FrozenLake {before:.1f} to {after:.1f} % ({len(runs)} seed{'s'[: len(runs) - 1]})"


@cache
def _more() -> Mapping[str, str]:
    """Return the results of longer runs, where there are any."""
    kuhn = _runs("kuhn_magnet.json")["table"]
    plain, magnet = (kuhn[arm]["last"]["mean"] for arm in ("no magnet", "magnet that follows"))
    return {
        "gigpo": _lakes(*_runs("quickstart.json").values()),
        "grpo": _lakes(_runs()["grpo_quickstart"]),
        "mmd": f"KuhnPoker exploitability {plain:.3f} to {magnet:.3f} (3 seeds)",
    }


@cache
def _curves() -> Mapping[str, Mapping[str, Any]]:
    """Return method -> seed -> run on the lakes on which all methods are compared."""
    return _runs("methods.json")


def _on_lakes(name: str) -> str:
    """Return mean sampled success on the lakes before and after 40 iterations, with the number of seeds."""
    runs = [run["success"] for run in _curves()[name].values()]
    before, after = (100 * fmean(each[f"{when}-sampled"] for each in runs) for when in ("warmup", "final"))
    return f"{before:.0f} to {after:.0f} % ({len(runs)} seed{'s'[: len(runs) - 1]})"


@cache
def _claims() -> Mapping[str, Mapping[str, list[bool]]]:
    """Return method -> claim -> whether each of its tests holds."""
    found: dict[str, dict[str, list[bool]]] = {}
    for path in sorted((RESULTS / "claims").glob("*.json")):
        if path.name.endswith(".plan.json"):
            continue
        for test in json.loads(path.read_text("utf8"))["decision"]["tests"]:
            better, _, other = test["contrast"].partition(" > ")
            name = _NAMES.get(better.split()[0], better.split()[0].rstrip(","))
            if name != other.split()[0].rstrip(","):  # another method, not another setting
                found.setdefault(name, {}).setdefault(path.stem, []).append(test["said"] == "holds")
    return found


def _change(name: str) -> str:
    """Return the change in success over the run, in points, with its interval."""
    difference = _runs()[name]["headline"]["modes"]["sampled"]["after_minus_before"]
    if difference["gained"] == difference["lost"] == 0:
        return "critic only"
    value, low, high = (f"{100 * difference['estimate'][key]:.1f}" for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]" if value.startswith("-") else f"+{value} [{low}, {high}]"


def _tested(name: str) -> list[str]:
    return [f"({claim}) {sum(said)} of {len(said)}" for claim, said in _claims().get(name, {}).items()]


def cell(name: str) -> str:
    """Return the evidence of a method as a cell of the table of methods."""
    more = [_more()[name]] if name in _more() else []
    more += [f"lakes {_on_lakes(name)}"] if name in _curves() else []
    return "; ".join([*more, *([_change(name)] if name in _runs() else []), *_tested(name)]) or "-"


def sentence(name: str) -> str:
    """Return the evidence of a method as sentences of its page."""
    parts = [f"{_more()[name]}."] if name in _more() else []
    if name in _curves():
        parts.append(f"Sampled success on the [lakes of all methods]({CURVES}): {_on_lakes(name)}.")
    if name in _runs():
        run = _runs()[name]
        game = run["evaluations"]["final-sampled"]["env_id"].removeprefix("turngym/")
        head = f"One run of {run['environment_turns']:,} turns on {game}, without a control"
        change = _change(name)
        if change == "critic only":
            parts.append(f"{head}, ended before the policy was trained: the critic was trained alone.")
        else:
            modes = run["headline"]["modes"]["sampled"]
            before, after = (f"{100 * modes[key]['success']:.1f}" for key in ("before", "after"))
            parts.append(f"{head}: success {before} % before, {after} % after ({change} points, paired).")
    if tested := _tested(name):
        parts.append(f"Tests that hold, by [claim]({CLAIMS}): {', '.join(tested)}.")
    return f"**Evidence.** {' '.join(parts) or 'No run in the comparison of all methods, and no tested claim.'}"
