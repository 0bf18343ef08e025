"""Cost of an agent's answers: tokens, calls, retries, seconds and money, per turn, episode or evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from turngym.arithmetic import float_sum

if TYPE_CHECKING:
    from turngym.agents.trajectory import Trajectory


_IF_ANY = ("tokens_cached", "reviews", "objections", "unreadable")


@dataclass(frozen=True, slots=True)
class Usage:
    """Costs of answers; instances can be added.

    Args:
        tokens_in: Prompt tokens of all calls that reported them.
        tokens_out: Completion tokens.
        calls: Requests sent, including retries.
        retries: Requests repeated after a failure.
        lost: Turns without an answer, played with the empty text.
        unmetered: Answers with an unknown number of tokens.
        latency: Seconds from request to answer, including waits; concurrent turns each count their own.
        cost: Price of the tokens in USD; None if the prices are unknown.
        failures: Kind of failure -> number of failed calls.
        shortened: Turns whose prompt dropped earlier turns because a server refused the whole conversation.
        tokens_cached: Number of the ``tokens_in`` that came from a server's cache.
        reviews: Actions that a critic was asked about.
        objections: Proposed actions that a critic called wrong.
        unreadable: Proposed actions without a readable verdict of the critic, which count as not objected to.

    >>> total = Usage(tokens_in=5, calls=1) + Usage(tokens_in=2, calls=3, retries=2, failures={"timeout": 2})
    >>> total.tokens_in, total.calls, dict(total.failures)
    (7, 4, {'timeout': 2})
    """

    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0
    retries: int = 0
    lost: int = 0
    unmetered: int = 0
    latency: float = 0.0
    cost: float | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    shortened: int = 0
    tokens_cached: int = 0
    reviews: int = 0
    objections: int = 0
    unreadable: int = 0

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.calls + other.calls,
            self.retries + other.retries,
            self.lost + other.lost,
            self.unmetered + other.unmetered,
            self.latency + other.latency,
            float_sum(costs) if costs else None,
            dict(Counter(self.failures) + Counter(other.failures)),
            self.shortened + other.shortened,
            self.tokens_cached + other.tokens_cached,
            self.reviews + other.reviews,
            self.objections + other.objections,
            self.unreadable + other.unreadable,
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON-compatible data; :meth:`from_json` reads it back."""
        return {
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            **{name: count for name in _IF_ANY if (count := getattr(self, name))},
            "calls": self.calls,
            "retries": self.retries,
            "lost": self.lost,
            "unmetered": self.unmetered,
            "shortened": self.shortened,
            "latency": self.latency,
            "cost": self.cost,
            "failures": dict(sorted(self.failures.items())),
        }

    @property
    def is_unanswered(self) -> bool:
        """True if no request was answered, so a score would say nothing about the agent.

        >>> Usage(calls=6, retries=4, lost=2).is_unanswered, Usage(calls=6, retries=4, lost=1).is_unanswered
        (True, False)
        """
        return bool(self.lost) and self.calls - self.retries <= self.lost

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Usage:
        """Read the output of :meth:`as_json`; unknown keys are ignored.

        >>> Usage.from_json(Usage(calls=2, cost=0.5).as_json()) == Usage(calls=2, cost=0.5)
        True
        """
        return cls(**{name: content[name] for name in cls.__dataclass_fields__ if name in content})


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum; zero without any."""
    return sum(usages, Usage())


def usage_of(trajectory: Trajectory) -> Usage:
    """Return the usage of an agent in an episode."""
    return total(
        turn.usage or Usage(len(turn.prompt_ids), len(turn.completion_ids), calls=1) for turn in trajectory.turns
    )
