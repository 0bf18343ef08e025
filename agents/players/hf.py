"""A short name for the backend ``transformers``, in a file of its own so that it is known where torch is absent."""

from __future__ import annotations

from turngym.agents.players import BACKENDS
from turngym.agents.players.transformers import make

BACKENDS.register("hf")(make)
