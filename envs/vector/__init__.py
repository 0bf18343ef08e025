"""Vectors: several environments stepped together, in this process or in workers that may break.

What breaks ends the episode of its own slot: the step is truncated with reward 0 and says why in ``info["fault"]``, a
fresh environment takes over, the other slots go on as if nothing had happened, and :meth:`TextVectorEnv.stats` counts
it. A result that breaks the contract, such as a reward that is not finite, is a fault too. How much a backend survives
follows from where it runs the environments:

=============================================  ======  =======  =======  =======  =====
what an environment does                       sync    thread   asyncio  process  ray
=============================================  ======  =======  =======  =======  =====
raise an exception, in a step or reset         yes     yes      yes      yes      yes
hang in a step, in a reset or in ``close``     no      yes [1]  yes [1]  yes      yes
call ``sys.exit()``                            yes     yes      yes      yes      yes
end its process, or be killed                  no      no       no       yes      yes
close its process's file descriptors           no      no       no       yes      yes
use more memory than ``memory_limit_mib``      no      no       no       yes      yes
write garbage into the worker's pipe           --      --       --       yes      yes
lose its machine                               no      no       no       no       yes
=============================================  ======  =======  =======  =======  =====

[1] Nothing can end a thread, so it is left behind with its environment and counted as ``abandoned``; it does not keep
the program from ending. A coroutine is cancelled, and counted only if it does not end then. Neither helps against code
that holds Python's global lock for ever, nor for long against the environments of :mod:`turngym.envs.adapters`, which
take turns within a process: one that hangs keeps the others from theirs.

A reset that breaks is tried once more in a fresh environment. If that breaks too, the episode ends at its first step.
The same seeds and actions give byte-equal transcripts on every backend, whatever breaks in other slots.
"""

from turngym.envs.vector.base import TextVectorEnv
from turngym.envs.vector.info import Infos
from turngym.envs.vector.make import make_vec

__all__ = ["Infos", "TextVectorEnv", "make_vec"]
