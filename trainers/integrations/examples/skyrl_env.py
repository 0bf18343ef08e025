"""The life of a SkyRL trajectory, as its generator leads it: make, init, step until done, metrics, close."""

from __future__ import annotations

import skyrl_gym

from turngym.trainers.integrations.skyrl import TurngymEnv, skyrl_rows


def main() -> dict[str, float]:
    """Play one game of poker per row with a player that always calls or checks, and return the mean metrics."""
    metrics = []
    for row in skyrl_rows("turngym/KuhnPokerSeat-v0", range(8), settings={"opponents": "random"}):
        env = skyrl_gym.make(row["env_class"], env_config={"legal_actions": True}, extras=row)
        conversation, _ = env.init(row["prompt"])
        done = False
        while not done:
            legal = conversation[-1]["content"].rpartition("Legal actions: ")[2].split(", ")
            answer = f"<action>{'call' if 'call' in legal else 'check'}</action>"
            output = env.step(answer)
            conversation += [{"role": "assistant", "content": answer}, *output["observations"]]
            done = output["done"]
        metrics.append(env.get_metrics())
        env.close()
    return dict(TurngymEnv.aggregate_metrics(metrics))


if __name__ == "__main__":
    print(main())
