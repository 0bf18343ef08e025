"""Vectors: several environments stepped together, in this process or in workers that may break."""

from turngym.envs.vector.base import TextVectorEnv
from turngym.envs.vector.info import Infos
from turngym.envs.vector.make import make_vec

__all__ = ["Infos", "TextVectorEnv", "make_vec"]
