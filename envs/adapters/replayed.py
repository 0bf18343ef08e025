"""Base class of adapters: a third-party environment whose state is its seed and its actions."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from typing import NamedTuple

from turngym.arithmetic import as_float, is_finite
from turngym.envs.adapters.global_random import GlobalRandom
from turngym.envs.core import UNBOUNDED, Outcome, TextEnv
from turngym.envs.validation import refuse_task
from turngym.errors import SnapshotUnsupported, TurngymError
from turngym.types import JSONValue

BROKEN_ACTION = "That is no action that can be read."
_BREAKS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)


class Reply(NamedTuple):
    """A third-party environment's answer, with corrected flags.

    Args:
        observation: New part of the observation.
        reward: The reward of the turn.
        terminated: Whether the rules ended the episode.
        truncated: Whether a limit ended it; never together with ``terminated``.
        success: Whether the task is solved; only read when ``terminated``.
        action_is_valid: Whether the action was understood and legal.
    """

    observation: str
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    success: bool = False
    action_is_valid: bool = True


class ReplayedEnv(TextEnv[str]):
    """A third-party environment under turngym's contract.

    Every call into it runs in global generators of its own (:mod:`turngym.envs.adapters.global_random`). An episode is
    identified by the seed given to the inner environment, which also decides its split: splits share no seed, but two
    seeds may produce the same task. Snapshots hold that seed and the actions, and are restored by replay. If an action
    makes the inner environment raise, the previous state is restored and the action is answered as invalid; if the
    action was listed as legal, the error is raised, because the agent is not at fault. The score is the sum of the
    rewards, and the progress 0 until the task is solved, since the inner environment reports no more.

    One lock guards the global generators of the process, so adapted environments in threads take turns, and one that
    hangs blocks all others: run those that may hang in worker processes.
    """

    score_range = UNBOUNDED
    source: str = ""
    """Name of the adapted library, the first part of :attr:`instance`."""

    def setup(self) -> None:
        self._random = GlobalRandom()
        self._seed = 0
        self._is_torn = False
        self._start_books("")

    @abstractmethod
    def foreign_reset(self, seed: int) -> str:
        """Start an episode that depends on ``seed`` alone, and return the first observation."""

    @abstractmethod
    def foreign_step(self, action: str) -> Reply:
        """Pass on one action text."""

    def _start_books(self, observation: str) -> None:
        self._actions: list[str] = []
        self._total = 0.0
        self._seen = hashlib.sha256(observation.encode("utf8", "surrogatepass"))

    def _start(self) -> str:
        self._is_torn = True  # unless it finishes
        self._random.seed(self._seed)
        with self._random.lent():
            observation = self.foreign_reset(self._seed)
        self._start_books(observation)
        self._is_torn = False
        return observation

    def _take(self, action: str) -> Reply:
        """Pass on an action and update the records, after undoing what an earlier error left half done."""
        if self._is_torn:
            self._repeat(self._actions)
        self._is_torn = True
        with self._random.lent():
            reply = self.foreign_step(action)
        if not is_finite(reply.reward):
            reward = as_float(reply.reward)
            raise TurngymError(f"{self.instance} of {self.env_id} gave the reward {reward}: it is broken.")
        self._is_torn = False
        self._actions.append(action)
        self._total += reply.reward
        self._seen.update(repr(reply).encode("utf8", "surrogatepass"))
        return reply

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._start_books("")  # nothing of the last episode remains, even if the new one fails
        self._seed = self.draw(lambda generator: int(generator.integers(2**31)), self._name)
        return self._start()

    def _name(self, seed: int) -> str:
        return f"{self.source} seed {seed}"

    def apply_action(self, action: str) -> Outcome[str]:
        try:
            reply = self._take(action)
        except _BREAKS:
            if action in self.legal_actions():
                raise  # not the agent's fault
            self._repeat(self._actions)
            return Outcome(BROKEN_ACTION, action_is_valid=False)
        flags = reply.terminated, reply.success, reply.action_is_valid, reply.truncated
        return Outcome(reply.observation, reply.reward, *flags)

    def _repeat(self, actions: list[str]) -> None:
        self._start()
        is_done = False
        try:
            for action in actions:
                self._take(action)
            is_done = True
        finally:
            if not is_done:
                self._actions = actions  # keep what was played

    def score(self) -> float:
        return self._total

    def progress(self) -> float:
        return float(self._success == 1)

    def save_state(self) -> JSONValue:
        return {"seed": self._seed, "actions": list(self._actions), "seen": self._seen.hexdigest()}

    def load_state(self, state: JSONValue) -> None:
        self._seed = state["seed"]
        self._repeat(state["actions"])
        if self._seen.hexdigest() != state["seen"]:
            raise SnapshotUnsupported(
                f"replaying {self.instance} of {self.env_id} showed something else than before: another version of "
                "the package, or a game whose course depends on more than its seed and actions."
            )
