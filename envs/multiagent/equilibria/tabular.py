"""Tabular policies in files of JSON, and the player that plays them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import PLAYERS, Player
from turngym.envs.multiagent.views import SeatView
from turngym.errors import ConfigError, UnknownName
from turngym.storage.bounded import read_json
from turngym.storage.files import path_of, write_atomic
from turngym.types import StrPath

FORMAT = "turngym tabular policy 1"
Table = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Seat -> information set -> action -> probability."""


@dataclass(frozen=True)
class TabularPolicy:
    """Probabilities of actions at the information sets of a game.

    Args:
        game: Name of the game, as ``Game.name``.
        table: See :data:`Table`.
        settings: Options of the game.
        about: Origin of the policy, such as solver and exploitability.

    Raises:
        ConfigError: Something else was given, or a distribution does not add up to 1.

    >>> TabularPolicy("coin", {"player_0": {"start": {"heads": 0.5}}})
    Traceback (most recent call last):
    turngym.errors.ConfigError: the probabilities of player_0 at 'start' must add up to 1, got {'heads': 0.5}.
    """

    game: str
    table: Table
    settings: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        kinds = {"game": str, "table": Mapping, "settings": Mapping, "about": Mapping}
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise ConfigError(
                    f"{name} of a tabular policy must be a {kind.__name__}, got {getattr(self, name)!r:.80}."
                )
        for seat, sets in self.table.items():
            if not isinstance(sets, Mapping):
                raise ConfigError(f"the policy of {seat} must map information sets to probabilities, got {sets!r:.80}.")
            for name, chances in sets.items():
                if not _is_distribution(chances):
                    raise ConfigError(
                        f"the probabilities of {seat} at {name!r:.80} must add up to 1, got {chances!r:.200}."
                    )

    def save(self, path: StrPath) -> None:
        """Write the policy as JSON."""
        content = {"format": FORMAT, **{name: getattr(self, name) for name in ("game", "settings", "about", "table")}}
        write_atomic(path_of(path, "path"), json.dumps(content, indent=1) + "\n")

    @classmethod
    def load(cls, path: StrPath) -> TabularPolicy:
        """Return the policy in a file.

        Raises:
            UnknownName: There is no such file.
            ConfigError: It holds no policy.
        """
        try:
            content = read_json(path_of(path, "path"))
        except FileNotFoundError as error:
            raise UnknownName(f"no file {path}: pass one that `turngym solve` wrote.") from error
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} cannot be read as a policy: {error}.") from error
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise ConfigError(f"{path} is no {FORMAT!r}: pass a file that `turngym solve` wrote.")
        if not {"game", "table"} <= set(content) <= {"game", "table", "settings", "about"}:
            raise ConfigError(f"{path} must have game, table, settings and about, got {', '.join(content):.200}.")
        return cls(**content)


def _is_distribution(chances: object) -> bool:
    if not isinstance(chances, Mapping) or not all(
        type(one) in (int, float) and 0 <= one <= 1 for one in chances.values()
    ):
        return False
    return abs(float_sum(chances.values()) - 1) <= 1e-6


class TabularPlayer(Player):
    """Plays a tabular policy, and any legal action at information sets that the table lacks.

    Args:
        policy: The policy, or the file that holds it.
    """

    name = "tabular"

    def __init__(self, policy: TabularPolicy | StrPath) -> None:
        self.policy = policy if isinstance(policy, TabularPolicy) else TabularPolicy.load(policy)

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Sample an action at the information set."""
        legal = view.legal_actions
        known = self.policy.table.get(view.name, {}).get(view.anchor, {})
        chances = {action: known[action] for action in sorted(legal) if action in known}
        left = self._random() * float_sum(chances.values())
        for action, chance in chances.items():
            left -= chance
            if left < 0:
                return action
        return max(chances, key=chances.__getitem__) if chances else legal[int(self._random() * len(legal))]


@PLAYERS.register("tabular")
class TabularFilePlayer(TabularPlayer):
    """Plays the policy in a file: ``tabular:FILE``."""

    name = "tabular"

    @classmethod
    def from_argument(cls, argument: str, game: Game) -> Player:
        """Return the player of a file.

        Raises:
            UnknownName: There is no such file.
            ConfigError: No file is named, or its policy is one of another game or of other options.
        """
        if not argument:
            raise ConfigError("the player 'tabular' needs the file of its policy: write tabular:FILE.")
        player = cls(argument)
        found, wanted = (player.policy.game, dict(player.policy.settings)), (game.name, dict(game.settings))
        if json.loads(json.dumps(found)) != json.loads(json.dumps(wanted)):
            raise ConfigError(
                f"{argument} is a policy of {found[0]!r:.80} with {found[1]!r:.200}, not of {wanted[0]!r} with "
                f"{wanted[1]}."
            )
        return player
