"""Environments of other packages under ``turngym check``: ``python benchmarks/studies/checks/foreign.py [NAME ...]``.

Each is checked with all rules that apply, 30 episodes of every player included, in one process. What cannot be made
with this interpreter keeps its result in ``benchmarks/results/foreign_checks.json``: run it with the Python of
``.venvs/peers`` and ``.venvs/games`` too. OpenEnv's are two running servers of the package openenv-dipg-safety 0.1.67
with 40 questions written for this purpose: ``med_safety_gym.app`` on port 8123, and on port 8124 the same app made with
``SUPPORTS_CONCURRENT_SESSIONS = True`` and ``max_concurrent_envs=16``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.adapters.openenv_line import ServerFault
from turngym.envs.check import CheckFailed, check
from turngym.errors import MissingExtra

PLAYERS = 30


class Subject(NamedTuple):
    """An environment of others.

    Args:
        env_id: The adapter.
        options: Options of the adapter.
    """

    env_id: str
    options: Mapping[str, Any]


def _gymnasium(inner: str, **options: Any) -> Subject:
    return Subject("turngym/Gymnasium-v0", {"inner": inner, **options})


def _openenv(port: int, **options: Any) -> Subject:
    return Subject("turngym/OpenEnv-v0", {"url": f"http://127.0.0.1:{port}", **options})


def _pettingzoo(module: str) -> Subject:
    return Subject("turngym/PettingZooSeat-v0", {"module": f"pettingzoo.classic.{module}"})


SUBJECTS: Mapping[str, Subject] = {
    "gymnasium:Blackjack-v1": _gymnasium("Blackjack-v1"),
    "gymnasium:CartPole-v1": _gymnasium("CartPole-v1", actions=("left", "right"), solved_above=1e9),
    "gymnasium:CliffWalking-v1": _gymnasium("CliffWalking-v1"),
    "gymnasium:FrozenLake-v1": _gymnasium("FrozenLake-v1"),
    "gymnasium:Taxi-v4": _gymnasium("Taxi-v4"),
    "gem:game:GuessTheNumber-v0-easy": Subject("turngym/GEM-v0", {"game": "game:GuessTheNumber-v0-easy"}),
    "gem:game:Mastermind-v0-hard": Subject("turngym/GEM-v0", {"game": "game:Mastermind-v0-hard"}),
    "gem:game:Sokoban-v0-easy": Subject("turngym/GEM-v0", {"game": "game:Sokoban-v0-easy"}),
    "textarena:FrozenLake-v0": Subject("turngym/TextArena-v0", {"game": "FrozenLake-v0"}),
    "textarena:TowerOfHanoi-v0": Subject("turngym/TextArena-v0", {"game": "TowerOfHanoi-v0"}),
    "openenv:dipg_safety_env": _openenv(8123),
    "openenv:dipg_safety_env, 16 sessions": _openenv(8124, solved_above=30.0),
    "pettingzoo:classic.connect_four_v3": _pettingzoo("connect_four_v3"),
    "pettingzoo:classic.rps_v2": _pettingzoo("rps_v2"),
    "pettingzoo:classic.tictactoe_v3": _pettingzoo("tictactoe_v3"),
    "reasoning-gym:game_of_life_halting": Subject("turngym/ReasoningGym-v0", {"data": "game_of_life_halting"}),
    "reasoning-gym:leg_counting": Subject("turngym/ReasoningGym-v0", {"data": "leg_counting"}),
    "openspiel:tic_tac_toe": Subject("turngym/OpenSpielSeat-v0", {"rules": "tic_tac_toe"}),
}
"""Name -> environment."""


def examined(subject: Subject) -> dict[str, Any]:
    """Return what the check finds: how many rules hold, and the broken ones with evidence.

    Raises:
        MissingExtra: Its package is not installed.
    """
    try:
        report = check(subject.env_id, options=subject.options, in_process=True, players=PLAYERS)
    except CheckFailed as error:
        report = error.report
    failed = [result for result in report.results if result.status == "failed"]
    broken = {result.rule.name: [str(finding) for finding in result.findings] for result in failed}
    return {"held": len(report.passed), "broken": broken}


def main() -> int:
    """Check what can be made here, and write the results."""
    parser = arguments(__doc__, "foreign_checks.json")
    parser.add_argument("names", nargs="*", help="names of environments, all unless given")
    given = parser.parse_args()
    known = json.loads(given.out.read_text("utf8"))["environments"] if given.out.exists() else {}
    for name in given.names or SUBJECTS:
        try:
            known[name] = examined(SUBJECTS[name])
        except (MissingExtra, ServerFault) as error:
            print(f"{name}: {str(error)[:100]}", flush=True)
            continue
        print(f"{name}: {known[name]['held']} hold, broken: {known[name]['broken']}", flush=True)
        write_result(given.out, {"players": PLAYERS, "environments": dict(sorted(known.items()))}, "gymnasium", "numpy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
