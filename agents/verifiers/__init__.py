"""Verifiers score attempts without knowing their outcome, for best-of-n.

A verifier is anything with a method ``score(trajectory) -> float``, the higher the better. Each file of this package
registers one kind under its name; a custom verifier is ``module:Name`` or ``path/to/file.py:Name``, called with the
settings. It may also have ``verdict(trajectory) -> Verdict`` to report what a score cost, ``workers`` (how many
attempts it can score concurrently) and ``abandon()``, called when an interrupt must not wait for it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Protocol, runtime_checkable

from turngym.agents.core import Agent
from turngym.agents.players import AgentSettings
from turngym.agents.trajectory import Trajectory
from turngym.agents.usage import Usage
from turngym.arithmetic import as_float, is_finite
from turngym.errors import ConfigError
from turngym.loading import Wanted, call_with, is_own, load_object
from turngym.registry import Registry


@runtime_checkable
class Verifier(Protocol):
    """Scores attempts."""

    def score(self, trajectory: Trajectory) -> float:
        """Return the score of an attempt, the higher the better; NaN if it cannot be judged.

        Args:
            trajectory: The attempt without its outcome, a result of :func:`_blinded`.
        """
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """A verifier's verdict on one attempt.

    Args:
        score: The higher the better; NaN if not judged.
        usage: Cost of the verdict.
    """

    score: float
    usage: Usage = dataclasses.field(default_factory=Usage)

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as JSON-compatible data."""
        return {"score": float(self.score) if is_finite(self.score) else None, "usage": self.usage.as_json()}


class MakeVerifier(Protocol):
    """Factory of verifiers from the argument after the colon."""

    def __call__(self, argument: str, settings: AgentSettings, agent: Agent) -> Verifier:
        """Return the verifier.

        Args:
            argument: The argument after the colon.
            settings: Settings of the agent.
            agent: Agent.
        """
        ...


VERIFIERS: Registry[MakeVerifier] = Registry("verifier", "turngym.agents.verifiers")


def make_verifier(description: str, settings: AgentSettings, agent: Agent) -> Verifier:
    """Return the verifier that ``name``, ``name:argument``, ``module:Name`` or ``path/to/file.py:Name`` describes.

    Raises:
        UnknownName: There is no such verifier.
        ConfigError: The result has no ``score`` method.
    """
    if is_own(description, VERIFIERS):
        made = own_verifier(description, settings, agent)
    else:
        name, _, argument = description.partition(":")
        made = VERIFIERS[name](argument, settings, agent)
    if not isinstance(made, Verifier):
        raise ConfigError(
            f"the verifier {description!r} must have a method score(trajectory), {type(made).__name__} has none."
        )
    return made


_VERIFIER = Wanted(
    "a verifier",
    "a class with a method score(trajectory), or a function that makes one",
    lambda found: hasattr(found, "score") if isinstance(found, type) else callable(found),
)


def own_verifier(description: str, settings: AgentSettings, agent: Agent) -> Verifier:
    """Return a custom verifier.

    Args:
        description: ``"module:Name"``, ``"module:id"`` or ``"path/to/file.py:Name"``.
        settings: Its argument, if it takes one.
        agent: Agent of a verifier registered by the module.

    Raises:
        UnknownName: There is no such module, file, or name in it.
        ConfigError: It is not a verifier.
    """
    found = load_object(description, _VERIFIER, VERIFIERS)
    made: Verifier = found("", settings, agent) if VERIFIERS.holds(found) else call_with(found, settings)
    return made


def _blinded(trajectory: Trajectory) -> Trajectory:
    """Return an attempt without rewards, success, score and kind of end.

    Observations, actions and progress are unchanged; progress depends only on facts known to the agent.
    """
    turns = [dataclasses.replace(turn, reward=0.0) for turn in trajectory.turns]
    return dataclasses.replace(
        trajectory, turns=turns, terminated=False, truncated=False, success=-1, score=math.nan, fault=""
    )


def judge(verifier: Verifier, trajectory: Trajectory) -> Verdict:
    """Return a verifier's verdict on an attempt, without its outcome.

    Raises:
        ConfigError: It returns something other than a number.
    """
    tell = getattr(verifier, "verdict", None)
    blind = _blinded(trajectory)
    found = tell(blind) if tell is not None else verifier.score(blind)
    if isinstance(found, Verdict):
        return found
    if isinstance(found, bool) or not isinstance(found, int | float):
        kind = type(found).__name__
        raise ConfigError(f"{type(verifier).__name__}.score must return a number, got {kind}.")
    return Verdict(as_float(found))
