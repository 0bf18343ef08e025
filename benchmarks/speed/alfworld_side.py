"""The plain stack's side of ``alfworld_vs_plain.py``: ALFWorld's games on TextWorld's engine, one JSON line a game.

Runs in ``.venvs/alfworld``: ``python alfworld_side.py FOLDER STEPS``; the folder holds ``game.tw-pddl`` files.
"""

from __future__ import annotations

import itertools
import json
import random
import resource
import sys
import time
from pathlib import Path


def main() -> None:
    """Load each game, reset it twice, and take random admissible commands in it."""
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    draw = random.Random(0)
    for path in sorted(folder.glob("*.tw-pddl")):
        clock = [time.process_time()]
        infos = textworld.EnvInfos(won=True, admissible_commands=True)
        engine = textworld.start(str(path), infos, wrappers=[AlfredDemangler(shuffle=False), AlfredInfos])
        told = engine.reset()
        clock.append(time.process_time())
        told = engine.reset()
        clock.append(time.process_time())
        for _ in range(steps):
            told, _, done = engine.step(draw.choice(told.admissible_commands))
            if done:
                break
        clock.append(time.process_time())
        first, again, played = (after - before for before, after in itertools.pairwise(clock))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps([first, again, steps / played, memory]), flush=True)
        engine.close()


if __name__ == "__main__":
    main()
