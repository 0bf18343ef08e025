"""The settings of self-play: who plays with the learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from turngym.errors import ConfigError, nearest

Matching: TypeAlias = Literal["uniform", "linear", "squared", "variance", "linear_capped"]


@dataclass(frozen=True)
class SelfPlayConfig:
    """Who plays with the learner in games between seats; environments with one agent do not read this.

    Args:
        opponents: Drawn for every group of games: ``self`` gives all seats to the learner, ``past:N`` gives the other
            side to one of its N newest frozen selves, any other text names a player of the game, such as ``random``.
        freeze_every: Iterations between frozen selves.
        matching: How opponents other than ``self`` are drawn: all equally likely (``uniform``), or by the share p of
            games that the learner wins against them (prioritised fictitious self-play): in proportion to 1 - p
            (``linear``), its square (``squared``), p (1 - p) (``variance``) or min(1/2, 1 - p) (``linear_capped``).
        matching_decay: Weight of an opponent's earlier games in that share when another one has been played: it
            remembers about 1 / (1 - matching_decay) games.
        demonstrator: Player whose games the warm-up imitates; ``random`` teaches how to answer and not what.
        evaluation_opponents: Players that evaluations play against, every side once per seed; the report shows the
            first one.
    """

    opponents: tuple[str, ...] = ("self",)
    freeze_every: int = 20
    matching: Matching = "uniform"
    matching_decay: float = 0.99
    demonstrator: str = "random"
    evaluation_opponents: tuple[str, ...] = ("random",)

    def __post_init__(self) -> None:
        for name in ("opponents", "evaluation_opponents"):
            if not getattr(self, name):
                raise ConfigError(f"{name} must name at least one player, got none.")
        for opponent in self.opponents:
            kind, sign, count = opponent.partition(":")
            if kind == "past" and not (sign and count.isdecimal() and int(count) > 0):
                raise ConfigError(f"past selves are written past:N with N of at least 1, got {opponent!r}.")
        if self.freeze_every < 1:
            raise ConfigError(f"freeze_every must be at least 1, got {self.freeze_every}.")
        if self.matching not in get_args(Matching):
            raise ConfigError(f"no matching named {self.matching!r}. {nearest(self.matching, get_args(Matching))}")
        if not 0 <= self.matching_decay <= 1:
            raise ConfigError(f"matching_decay must lie in [0, 1], got {self.matching_decay}.")
        if self.is_prioritised and set(self.opponents) == {"self"}:
            raise ConfigError(
                f"matching {self.matching} draws among opponents other than self: add some, as in "
                "--self-play.opponents self past:4 random, or take --self-play.matching uniform."
            )

    @property
    def num_past(self) -> int:
        """How many frozen selves are needed at once."""
        return max([int(name.partition(":")[2]) for name in self.opponents if name.startswith("past:")], default=0)

    @property
    def is_prioritised(self) -> bool:
        """Whether opponents are drawn by how the learner does against them."""
        return self.matching != "uniform"

    @property
    def has_fixed_opponents(self) -> bool:
        """Whether the learner plays against the same players all the time, each as often as the others."""
        learns = any(name == "self" or name.startswith("past:") for name in self.opponents)
        return not learns and not self.is_prioritised
