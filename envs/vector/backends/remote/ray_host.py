"""A Ray actor: holds a worker process on its node and forwards operations and answers.

The environments live in that process and not in the actor itself, so that if one breaks its process, the actor survives
to report the slot, and Ray is unaffected.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium
from gymnasium.vector.utils import CloudpickleWrapper

from turngym.envs.vector.backends.base import BackendOptions
from turngym.envs.vector.backends.channel import decode, encode
from turngym.envs.vector.backends.process import ProcessBackend
from turngym.envs.vector.backends.worker import encode_refusal
from turngym.envs.vector.slots.maker import Maker

BEAT_SECONDS = 0.5
"""Maximum time that an actor keeps a call waiting, so that it shows liveness and can be closed."""


class Sealed:
    """A maker that is unpickled only where the environment is made, so that the actor imports nothing for it.

    Args:
        maker: The maker.
    """

    def __init__(self, maker: Maker) -> None:
        self._pickled = pickle.dumps(CloudpickleWrapper(maker))

    def __call__(self) -> gymnasium.Env[Any, Any]:
        """Return a fresh environment."""
        maker: Maker = pickle.loads(self._pickled).fn
        return maker()


class Host:
    """Runs some slots in a process of this node.

    Args:
        makers: The makers of the slots.
        slots: The numbers that the vector gives to these slots.
        options: The vector's limits.
        path: The vector's import path, which is searched after this node's own.
    """

    def __init__(
        self, makers: Sequence[Sealed], slots: Sequence[int], options: BackendOptions, path: list[str]
    ) -> None:
        sys.path.extend(entry for entry in path if entry not in sys.path)
        plain = [Maker(maker, {}, (), False) for maker in makers]
        self._backend = ProcessBackend(plain, replace(options, num_workers=1, own={}))
        self._index = {slot: index for index, slot in enumerate(slots)}
        self._under_way: dict[int, tuple[int, str]] = {}
        self._replaced = 0

    def where(self) -> tuple[str, int]:
        """Return the id of the node and the id of the actor's process."""
        import ray

        return ray.get_runtime_context().get_node_id(), os.getpid()

    def exchange(self, frame: bytes | None) -> tuple[bytes, int]:
        """Take jobs, wait for answers, and return those that are ready, perhaps none.

        Args:
            frame: Jobs as :class:`~turngym.envs.vector.backends.workers.WorkersBackend` sends them; None for none.

        Returns:
            The answers as a worker process sends them, and how many processes were replaced meanwhile.
        """
        try:
            if frame is not None:
                self._submit(decode(frame)[1])
            self._backend.pump(BEAT_SECONDS)
            answers = encode((self._answers(), self._backend.latencies.drain()))
        except Exception as error:  # raised again where the vector is
            answers = encode_refusal(error)
        replaced, self._replaced = self._backend.workers_replaced - self._replaced, self._backend.workers_replaced
        return answers, replaced

    def close(self) -> None:
        """Close the environments and end the process."""
        self._backend.close()

    def _submit(self, jobs: list[tuple[int, int, Any, Any]]) -> None:
        for serial, slot, journal, op in jobs:
            index = self._index[slot]
            self._under_way[index] = serial, op[0]
            if journal is not None:
                self._backend.adopt(index, journal)
        self._backend.submit([self._index[slot] for _, slot, _, _ in jobs], [op for *_, op in jobs])

    def _answers(self) -> list[tuple[int, Any, Any]]:
        done, self._backend.done = self._backend.done, {}
        answers = []
        for index, content in done.items():
            serial, kind = self._under_way.pop(index)
            answers.append((serial, content, self._backend.beginning(index) if kind == "reset" else None))
        return answers
