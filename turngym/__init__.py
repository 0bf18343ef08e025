"""Multi-turn environments, agents and trainers for language-model agents.

Importing this package registers every environment with Gymnasium, for ``gymnasium.make``. Heavy packages (torch,
transformers, a Java runtime) are imported only by the parts that use them.

>>> import gymnasium, turngym
>>> env = gymnasium.make("turngym/GuessTheNumber-v0")
>>> observation, info = env.reset(seed=7)
>>> observation, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
"""

from turngym.interpreter import is_command, prepare_command, require

if is_command():  # a library leaves the process as it is
    prepare_command()
require()

from typing import TYPE_CHECKING  # noqa: E402

from turngym.envs.registration import register_all, register_declared  # noqa: E402
from turngym.exports import lazy_names  # noqa: E402

if TYPE_CHECKING:
    from turngym.agents.core import Agent, Decision
    from turngym.benchmarks.evaluation.comparison import compare
    from turngym.benchmarks.evaluation.evaluate import evaluate, rollout
    from turngym.benchmarks.training import train
    from turngym.envs.check import check
    from turngym.envs.core import Outcome, TextEnv
    from turngym.envs.registration import register_env, register_game
    from turngym.envs.vector import TextVectorEnv, make_vec
    from turngym.errors import ConfigError, TurngymError
    from turngym.plugins import load_plugins
    from turngym.seeding import stream
    from turngym.types import Info
    from turngym.wrappers.wrapping import wrap
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.agents.core": ("Agent", "Decision"),
            "turngym.benchmarks.evaluation.comparison": ("compare",),
            "turngym.benchmarks.evaluation.evaluate": ("evaluate", "rollout"),
            "turngym.benchmarks.training": ("train",),
            "turngym.envs.check": ("check",),
            "turngym.envs.core": ("Outcome", "TextEnv"),
            "turngym.envs.registration": ("register_env", "register_game"),
            "turngym.envs.vector": ("TextVectorEnv", "make_vec"),
            "turngym.errors": ("ConfigError", "TurngymError"),
            "turngym.plugins": ("load_plugins",),
            "turngym.seeding": ("stream",),
            "turngym.types": ("Info",),
            "turngym.wrappers.wrapping": ("wrap",),
        },
    )

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "ConfigError",
    "Decision",
    "Info",
    "Outcome",
    "TextEnv",
    "TextVectorEnv",
    "TurngymError",
    "__version__",
    "check",
    "compare",
    "evaluate",
    "load_plugins",
    "make_vec",
    "register_env",
    "register_game",
    "rollout",
    "stream",
    "train",
    "wrap",
]

register_all()
register_declared()
