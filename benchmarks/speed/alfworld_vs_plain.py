"""ALFWorld's games on turngym's engine beside the plain stack (alfworld and textworld), in CPU-seconds.

    ALFWORLD_DATA=FOLDER python benchmarks/speed/alfworld_vs_plain.py

For some games of valid_unseen, side by side: the first reset of a game, a later reset of the same game, and steps with
random admissible commands, at 1 slot; ours also in vectors of 8 slots. The plain stack runs in a process of its own,
game by game between ours; it cannot be run in threads, so 8 slots of it are 8 such processes, with 8 times its memory.
Then what opening a fold costs, unpacked and not. ALFWORLD_DATA must be the compact layout, and ``make
integration-alfworld`` makes the plain stack's environment. Writes ``benchmarks/results/alfworld.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.envs.household import alfworld_games
from turngym.envs.household.alfworld import ALFWorld
from turngym.envs.vector import make_vec
from turngym.files import write_json

ROOT = Path(__file__).parent.parent.parent
PEER = ROOT / ".venvs" / "alfworld" / "bin" / "python"
TARGET = ROOT / "benchmarks" / "results" / "alfworld.json"
OURS = 2000


def open_fold(fold: str, cache: str) -> float:
    """Return the seconds that a fresh process takes to open a fold, imports left out."""
    code = (
        "import time; from turngym.envs.household.alfworld_games import find_data, open_games; "
        f"t = time.perf_counter(); open_games(find_data(''), {fold!r}); print(time.perf_counter() - t)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    return float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)


def play_ours(env: ALFWorld, name: str) -> list[float]:
    """Return seconds of the first and of a later reset of a game, and steps a CPU-second."""
    draw, clock = random.Random(0), [time.process_time()]
    _, info = env.reset(seed=0, options={"task": name})
    clock.append(time.process_time())
    for _ in range(100):
        _, info = env.reset(seed=0, options={"task": name})
    clock.append(time.process_time())
    for _ in range(OURS):
        *_, info = env.step(draw.choice(info["legal_actions"]))
        if info["success"] >= 0:
            _, info = env.reset(seed=0, options={"task": name})
    clock.append(time.process_time())
    return [clock[1] - clock[0], (clock[2] - clock[1]) / 100, OURS / (clock[3] - clock[2])]


def play_vector(slots: int) -> float:
    """Return steps a CPU-second of a vector with random legal actions, resets included."""
    vector, draw = make_vec("turngym/ALFWorld-v0", slots, split="test"), random.Random(0)
    _, info = vector.reset(seed=0)
    begun, rounds = time.process_time(), OURS // slots
    for _ in range(rounds):
        *_, info = vector.step([draw.choice(actions or ("look",)) for actions in info["legal_actions"]])
    seconds = time.process_time() - begun
    vector.close()
    return rounds * slots / seconds


def write_game(folder: Path, data: Path, name: str) -> None:
    """Write one game as the official layout has it."""
    raw = alfworld_games.open_games(data, "valid_unseen").raw(name)
    grammar = (data / "alfred.twl2").read_text().replace("{goal_text}", raw["goal_text"])
    content = {**raw, "pddl_domain": (data / "alfred.pddl").read_text(), "grammar": grammar, "solvable": True}
    (folder / "game.tw-pddl").write_text(json.dumps(content))


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=5, help="games to measure")
    parser.add_argument("--steps", type=int, default=20, help="steps of the plain stack in each")
    args = parser.parse_args()
    data, env = alfworld_games.find_data(""), ALFWorld(split="test", max_turns=100_000)
    names = env.tasks()[:: len(env.tasks()) // args.games][: args.games]
    ours, theirs = [], []
    for name in names:
        ours.append(play_ours(env, name))
        with tempfile.TemporaryDirectory() as folder:
            write_game(Path(folder), data, name)
            command = [str(PEER), str(Path(__file__).with_name("alfworld_side.py")), folder, str(args.steps)]
            theirs.append(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))
    with tempfile.TemporaryDirectory() as cache:
        opening = {
            fold: {
                "unpacking": open_fold(fold, cache),
                "later": statistics.median(open_fold(fold, cache) for _ in "abc"),
            }
            for fold in ("train", "valid_unseen")
        }
    medians = [[statistics.median(column) for column in zip(*rows, strict=True)] for rows in (ours, theirs)]
    result: dict[str, Any] = {
        "machine": machine(),
        "games": list(names),
        "turngym": dict(zip(("first_reset_s", "later_reset_s", "steps_per_cpu_s"), medians[0], strict=True)),
        "plain": dict(zip(("first_reset_s", "later_reset_s", "steps_per_cpu_s", "mib"), medians[1], strict=True)),
        "turngym_vector_steps_per_cpu_s": {str(slots): play_vector(slots) for slots in (1, 8)},
        "turngym_mib_of_8_slots": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "opening_s": opening,
    }
    write_json(TARGET, result)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
