"""Train RLlib's PPO for a few iterations on a text environment, then on a game whose seats share one policy.

python trainers/integrations/examples/rllib_ppo.py --iterations 3
"""

import argparse
from typing import Any

import ray
from ray.rllib.algorithms.ppo import PPOConfig

from turngym.trainers.integrations.rllib import GAME, SINGLE, register_envs


def config_of(env: str, env_config: dict[str, Any], batch: int) -> PPOConfig:
    """Return a configuration that needs one process and no GPU."""
    config = PPOConfig().environment(env, env_config=env_config)
    config = config.env_runners(num_env_runners=0).learners(num_learners=0, num_gpus_per_learner=0)
    config = config.training(train_batch_size_per_learner=batch, minibatch_size=batch // 2, num_epochs=2)
    return config.debugging(seed=0, log_level="ERROR")


def train(config: PPOConfig, iterations: int) -> dict[str, float]:
    """Train and return what was counted in the last iteration."""
    algorithm = config.build_algo()
    result: dict[str, Any] = {}
    for _ in range(iterations):
        result = algorithm.train()
    algorithm.stop()
    runners = result["env_runners"]
    wanted = {"turns": "num_env_steps_sampled_lifetime", "return": "episode_return_mean"}
    return {name: round(float(runners[key]), 3) for name, key in wanted.items()}


def main() -> None:
    """Train on both."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--env", default="turngym/FrozenLake-v0")
    parser.add_argument("--game", default="turngym/KuhnPoker-v0")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--batch", type=int, default=512, help="turns of each iteration")
    arguments = parser.parse_args()

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    register_envs()
    view = {"encoding": "characters", "features": 64}
    single = config_of(SINGLE, {"env_id": arguments.env, **view}, arguments.batch)
    print(arguments.env, train(single, arguments.iterations), flush=True)
    game = config_of(GAME, {"game_id": arguments.game, **view}, arguments.batch)
    game = game.multi_agent(policies={"shared"}, policy_mapping_fn=lambda agent, *_, **__: "shared")
    print(arguments.game, train(game, arguments.iterations), flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
