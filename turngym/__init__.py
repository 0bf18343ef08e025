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

if _IS_MODULE or "turngym" in (os.path.basename(word) for word in sys.orig_argv[:2]):
    from turngym.interrupted import be_quiet

    be_quiet()

from typing import TYPE_CHECKING, Any  # noqa: E402

from turngym.envs.registration import register_all  # noqa: E402
from turngym.moved import install  # noqa: E402

if TYPE_CHECKING:
    from turngym.envs.check import check
    from turngym.envs.core import TextEnv
    from turngym.envs.vector import TextVectorEnv, make_vec

__version__ = "0.1.0"
__all__ = ["TextEnv", "TextVectorEnv", "__version__", "check", "make_vec"]

_LAZY = {
    "TextEnv": "turngym.envs.core",
    "TextVectorEnv": "turngym.envs.vector",
    "check": "turngym.envs.check",
    "make_vec": "turngym.envs.vector",
}

install()
register_all()


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module 'turngym' has no attribute {name!r}. Public names: {', '.join(__all__)}.")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
