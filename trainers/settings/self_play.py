"""Settings of self-play."""

from __future__ import annotations

from typing import Literal, TypeAlias

from turngym.errors import ConfigError
from turngym.options import Options, Positive, Share

Matching: TypeAlias = Literal["uniform", "linear", "squared", "variance", "linear_capped"]


class SelfPlayConfig(Options):
    """Opponents of the learner in multi-agent games; unused in single-agent environments.

    Args:
        opponents: Opponents, drawn per group of games: ``self`` gives all seats to the learner, ``past:N`` is one of
            the N newest frozen copies of the learner, anything else a player of the game, such as ``random``.
        freeze_every: Iterations between frozen copies.
        matching: Distribution of opponents other than ``self``: equal (``uniform``), or by the learner's win rate p
            against them (prioritised fictitious self-play): proportional to 1 - p (``linear``), its square
            (``squared``), p (1 - p) (``variance``) or min(1/2, 1 - p) (``linear_capped``).
        matching_decay: Decay of earlier games in that win rate: it averages about 1 / (1 - matching_decay) games.
        demonstrator: Player imitated in the warm-up; ``random`` teaches only the answer format.
        evaluation_opponents: Opponents in evaluations, every side once per seed; the report shows the first. ``self``
            gives all seats to the learner, for games that all seats win or lose together.
    """

    opponents: tuple[str, ...] = ("self",)
    freeze_every: Positive = 20
    matching: Matching = "uniform"
    matching_decay: Share = 0.99
    demonstrator: str = "random"
    evaluation_opponents: tuple[str, ...] = ("random",)

    def check(self) -> None:
        """Check what depends on several settings."""
        for name in ("opponents", "evaluation_opponents"):
            if not getattr(self, name):
                raise ConfigError(f"{name} must name at least one player, got none.")
        for opponent in self.opponents:
            kind, sign, count = opponent.partition(":")
            if kind == "past" and not (sign and count.isdecimal() and int(count) > 0):
                raise ConfigError(f"frozen copies are written past:N with N of at least 1, got {opponent!r}.")
        if self.is_prioritised and set(self.opponents) == {"self"}:
            raise ConfigError(
                f"matching {self.matching} draws among opponents other than self: add some, as in "
                "--self-play.opponents self past:4 random, or take --self-play.matching uniform."
            )

    @property
    def num_past(self) -> int:
        """Number of frozen copies needed at once."""
        return max([int(name.partition(":")[2]) for name in self.opponents if name.startswith("past:")], default=0)

    @property
    def is_prioritised(self) -> bool:
        """True if opponents are drawn by win rate."""
        return self.matching != "uniform"

    @property
    def has_fixed_opponents(self) -> bool:
        """True if the opponents and their frequencies never change."""
        learns = any(name == "self" or name.startswith("past:") for name in self.opponents)
        return not learns and not self.is_prioritised
