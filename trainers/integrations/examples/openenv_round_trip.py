"""Serve an environment to clients of OpenEnv, and play sixteen sessions of it as one vector of turngym.

    pip install "turngym[serve]"
    python trainers/integrations/examples/openenv_round_trip.py

The server is usually another process or machine: ``turngym serve-env turngym/GuessTheNumber-v0``. Openenv's own client
plays the same server: ``GenericEnvClient(base_url=url)``, ``await client.step({"message": "50"})``.
"""

from functools import partial

import gymnasium

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.servers.openenv.server import serving
from turngym.envs.vector import make_vec

GAME, SLOTS = "turngym/GuessTheNumber-v0", 16


def middle(anchor: str) -> str:
    """Return the middle of the interval that is left, such as ``from 26 to 50``."""
    _, low, _, high = anchor.split()
    return str((int(low) + int(high)) // 2)


def main() -> None:
    """Play one episode in each slot."""
    with serving(partial(gymnasium.make, GAME), GAME) as url:
        vector = make_vec("turngym/OpenEnv-v0", SLOTS, backend="asyncio", url=url, autoreset_mode="disabled")
        print(vector.call("instructions")[0], end="\n\n")
        rows = dict(enumerate(vector.reset(seed=0)[-1].rows))
        turns: list[int] = []
        for turn in range(1, 11):
            infos = vector.step([middle(row["anchor"]) for row in rows.values()], [*rows])[-1]
            rows = dict(zip(rows, infos.rows, strict=True))
            turns += [turn for row in rows.values() if row["success"] == 1]
            rows = {slot: row for slot, row in rows.items() if row["success"] < 0}
            if not rows:
                break
        faults = vector.stats()["faults"]
        print(f"{len(turns)} of {SLOTS} sessions solved, after {sum(turns) / len(turns):.1f} turns; faults: {faults}")
        vector.close()


if __name__ == "__main__":
    main()
