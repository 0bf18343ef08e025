"""A short name for the backend ``transformers``, in a separate file so that it is known without torch."""

from __future__ import annotations

from turngym.agents.players import BACKENDS
from turngym.agents.players.transformers import make

BACKENDS.register("hf")(make)
