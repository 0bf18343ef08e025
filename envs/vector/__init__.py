"""Vectors: several environments stepped together, in this process or in workers, with fault isolation.

A fault ends the episode of its own slot: the step is truncated with reward 0 and ``info["fault"]`` says why, a fresh
environment takes over, the other slots are unaffected, and :meth:`TextVectorEnv.stats` counts it. A result that breaks
the contract, such as a reward that is not finite, is a fault too. How much a backend survives follows from where it
runs the environments:

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

[1] A thread cannot be killed, so it is abandoned with its environment and counted as ``abandoned``; it does not keep
the program from ending. A coroutine is cancelled, and counted only if it does not end then. Neither helps against code
that holds the GIL for ever, nor for long against the environments of :mod:`turngym.envs.adapters`, which take turns
within a process: one that hangs blocks the others.

A reset that fails is retried once in a fresh environment. If that fails too, the episode ends at its first step.
The same seeds and actions give byte-equal transcripts on every backend, regardless of faults in other slots.
"""

from turngym.envs.vector.base import TextVectorEnv
from turngym.envs.vector.info import Infos
from turngym.envs.vector.make import make_vec

__all__ = ["Infos", "TextVectorEnv", "make_vec"]
