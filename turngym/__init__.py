"""Multi-turn environments, agents and trainers for language-model agents.

Importing this package registers every environment with Gymnasium, so that ``gymnasium.make`` finds them.
Heavy packages (torch, transformers, a Java runtime) are imported only by the parts that use them.

>>> import gymnasium, turngym
>>> env = gymnasium.make("turngym/GuessTheNumber-v0")
>>> observation, info = env.reset(seed=7)
>>> observation, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
"""

import os
import sys

# `python -m turngym` searches the working directory first, where a file gymnasium.py may have been downloaded. It is
# left out before anything else is imported, unless turngym itself was found there: then it is a checkout.
try:
    _HERE = os.getcwd()
except FileNotFoundError:  # the working directory has been deleted
    _HERE = ""
_IS_MODULE = any(pair == ("-m", "turngym") for pair in zip(sys.orig_argv, sys.orig_argv[1:], strict=False))
if (
    _HERE
    and _IS_MODULE
    and sys.path[:1] == [_HERE]  # not so under python -P
    and os.path.dirname(os.path.dirname(os.path.abspath(__file__))) != _HERE
):
    sys.path.pop(0)

_IS_COMMAND = _IS_MODULE or "turngym" in (os.path.basename(word) for word in sys.orig_argv[:2])
if _IS_COMMAND:
    from turngym.terminal.interrupted import be_quiet

    be_quiet()

from turngym.interpreter import require  # noqa: E402

require(_IS_COMMAND)

from typing import TYPE_CHECKING  # noqa: E402

from turngym.envs.registration import register_all  # noqa: E402
from turngym.exports import lazy_names  # noqa: E402

if TYPE_CHECKING:
    from turngym.agents.core import Agent, Decision
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
    "load_plugins",
    "make_vec",
    "register_env",
    "register_game",
    "stream",
    "wrap",
]

register_all()
