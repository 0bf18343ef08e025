"""Hashes of every environment's and game's rules and of the expert's play, also with the sums of Python 3.12.

python tests/support/rule_hashes.py                # records tests/golden/hashes.json anew
python tests/support/rule_hashes.py --check [--compensated]   # prints what differs from it, as JSON
"""

import builtins
import hashlib
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).parents[1] / "golden" / "hashes.json"
OURS = frozenset({"agents", "benchmarks", "envs", "turngym", "wrappers"})
FLOAT_SUMS: set[str] = set()
"""Lines of turngym that have called :func:`compensated_sum` for floats."""


def compensated_sum(values: Iterable[Any], /, start: Any = 0) -> Any:
    """Add as the built-in ``sum`` of Python 3.12 does: floats with Neumaier's compensation of rounding errors.

    >>> compensated_sum([0.1] * 10), compensated_sum([1, 2]), compensated_sum([[1], [2]], [])
    (1.0, 3, [1, 2])
    """
    items, total = iter(values), start
    for value in items:
        if type(total) is float:
            caller = sys._getframe(1)
            file = Path(caller.f_code.co_filename).resolve()
            if file.is_relative_to(ROOT) and file.relative_to(ROOT).parts[0] in OURS:
                FLOAT_SUMS.add(f"{file.relative_to(ROOT)}:{caller.f_lineno}")
            return _of_floats(total, [value, *items])
        total = total + value
    return total


def _of_floats(total: float, values: Iterable[Any]) -> Any:
    lost, items = 0.0, iter(values)
    for value in items:
        if type(value) is float:
            new = total + value
            lost += (total - new) + value if abs(total) >= abs(value) else (value - new) + total
            total = new
        elif isinstance(value, int):
            total += float(value)
        else:
            rest: Any = total + lost if lost and math.isfinite(lost) else total
            for each in (value, *items):
                rest = rest + each
            return rest
    return total + lost if lost and math.isfinite(lost) else total


def rulesets() -> Iterator[tuple[str, str]]:
    """Yield the id of each environment and game that can be made here, and the hash of its rules."""
    from turngym.benchmarks.evaluation.rulesets import game_ruleset_hash, ruleset_hash
    from turngym.envs.multiagent.registration import make_game
    from turngym.envs.registration import games, specs
    from turngym.errors import TurngymError

    for env_id in sorted(specs()):
        try:
            yield env_id, ruleset_hash(env_id, {})
        except TurngymError:  # it needs a package, a program or an option
            continue
    for game_id in sorted(games()):
        try:
            yield game_id, game_ruleset_hash(game_id, make_game(game_id))
        except TurngymError:  # it needs a package
            continue


def transcripts() -> Iterator[tuple[str, str]]:
    """Yield each environment that has a golden transcript and can be made here, and the hash of the expert's play."""
    from test_golden_transcripts import IDS, record

    from turngym.errors import MissingExtra

    for env_id in IDS:
        try:
            yield env_id, hashlib.sha256(record(env_id).encode()).hexdigest()
        except MissingExtra:
            continue


def found() -> dict[str, dict[str, str]]:
    """Return the hashes of what can be made here."""
    return {"rules": dict(rulesets()), "expert": dict(transcripts())}


def differing(known: Mapping[str, Mapping[str, str]], here: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Return kind -> the ids whose hash here is not the known one."""
    return {kind: [name for name in here[kind] if known[kind].get(name) != here[kind][name]] for kind in here}


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1] / "envs"))
    if "--compensated" in sys.argv:
        vars(builtins)["sum"] = compensated_sum
    if "--check" in sys.argv:
        hashes = found()
        told = {"differing": differing(json.loads(FILE.read_text("utf8")), hashes)}
        counts = {kind: len(each) for kind, each in hashes.items()}
        print(json.dumps({**told, "counts": counts, "float_sums": sorted(FLOAT_SUMS)}))
    else:
        FILE.write_text(json.dumps(found(), indent=1, sort_keys=True) + "\n", "utf8")
