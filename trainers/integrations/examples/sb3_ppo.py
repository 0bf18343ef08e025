"""Train a PPO of Stable-Baselines3 on a text game seen as numbers, and evaluate it like every agent of turngym.

python trainers/integrations/examples/sb3_ppo.py --steps 12000
"""

import argparse
from typing import Any

from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

from turngym.agents.episodes.evaluate import distinct_instances, evaluate
from turngym.envs.adapters.numeric import NumericEnv
from turngym.trainers.integrations.sb3 import PolicyAgent, numeric_env

ENV = "turngym/TowerOfHanoi-v0"
OPTIONS: dict[str, Any] = {"discs": 2}
SETTINGS: dict[str, Any] = {"n_steps": 64, "batch_size": 64, "gamma": 0.95, "learning_rate": 1e-3, "ent_coef": 0.01}


def make() -> NumericEnv:
    """Return the game as the policy sees it."""
    return numeric_env(ENV, encoding="characters", features=48, **OPTIONS)


def main() -> None:
    """Check, train, evaluate before and after."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--num-envs", type=int, default=8)
    arguments = parser.parse_args()

    env = make()
    check_env(env)
    model = PPO("MlpPolicy", make_vec_env(make, n_envs=arguments.num_envs, seed=0), seed=0, device="cpu", **SETTINGS)
    agent = PolicyAgent(model, env.view, env.menu)
    options = {"split": "test", **OPTIONS}
    seeds = list(distinct_instances(ENV, 100, options, whatever_there_is=True).values())
    before, _ = evaluate(ENV, agent, seeds=seeds, env_kwargs=options)
    model.learn(arguments.steps)
    after, _ = evaluate(ENV, agent, seeds=seeds, env_kwargs=options)
    shares = f"{before.success.value:.2f} before, {after.success.value:.2f} after {model.num_timesteps} steps"
    print(f"{ENV} {OPTIONS}, {len(seeds)} tasks: success {shares}")


if __name__ == "__main__":
    main()
