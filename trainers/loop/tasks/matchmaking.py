"""Prioritised fictitious self-play: opponents are drawn by the learner's win rate against them.

The weights are those of AlphaStar's league (Vinyals et al. 2019, Nature 575, and its pseudocode), with the learner's
win rate ``p``: ``1 - p`` (linear), ``(1 - p)^2`` (squared), ``p (1 - p)`` (variance: opponents of equal strength),
``min(1/2, 1 - p)`` (linear_capped). Win rates are per opponent and side, because sides do not have equal chances.
Earlier games decay, because the learner changes.

Unlike there, win rates are smoothed with one won and one lost game: a new opponent has 1/2, and one that always lost is
still drawn occasionally.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from turngym.arithmetic import float_sum
from turngym.errors import CheckpointError
from turngym.storage.bounded import read_json
from turngym.storage.files import write_json
from turngym.trainers.settings.self_play import Matching

_WEIGHTS: Mapping[str, Callable[[float], float]] = {
    "uniform": lambda share: 1.0,
    "linear": lambda share: 1 - share,
    "squared": lambda share: (1 - share) ** 2,
    "variance": lambda share: share * (1 - share),
    "linear_capped": lambda share: min(0.5, 1 - share),
}


def probabilities(shares: Sequence[float], matching: Matching) -> list[float]:
    """Return the probability of each opponent; equal if no weight is above 0.

    >>> probabilities([0.5, 0.75, 0.75], "linear")
    [0.5, 0.25, 0.25]

    Args:
        shares: The learner's win rate against each.
        matching: Name of the weight.
    """
    weights = [_WEIGHTS[matching](share) for share in shares]
    total = float_sum(weights)
    if total < 1e-10:
        return [1 / len(shares)] * len(shares)
    return [weight / total for weight in weights]


class Result(NamedTuple):
    """Result of a game for the learner.

    Args:
        opponent: Name of the opponent.
        side: Side that the learner played.
        won: True if the learner won; False for a draw.
    """

    opponent: str
    side: str
    won: bool


class Matchmaking:
    """Records the learner's results against each opponent, and draws opponents by them.

    Results count from the next iteration on, so all draws of an iteration use the same win rates.

    Args:
        matching: Name of the weight.
        decay: Factor of the weight of an opponent's earlier games with each new game.
    """

    def __init__(self, matching: Matching, decay: float) -> None:
        self.matching, self.decay = matching, decay
        self._records: dict[tuple[str, str], tuple[float, float]] = {}
        """Opponent and side -> decayed numbers of games and of won games."""
        self._pending: tuple[int, list[Result]] = (0, [])

    def begin(self, iteration: int, opponents: Iterable[str]) -> None:
        """Count the results of earlier iterations, and drop opponents that no longer exist."""
        self._records = self._counted(iteration)
        if self._pending[0] < iteration:
            self._pending = (iteration, [])
        known = set(opponents)
        self._records = {key: record for key, record in self._records.items() if key[0] in known}

    def note(self, iteration: int, results: Iterable[Result]) -> None:
        """Add results of an iteration that has started."""
        self._pending = (iteration, [*self._pending[1], *results])

    def _counted(self, iteration: int) -> dict[tuple[str, str], tuple[float, float]]:
        """Return the records, including results of all iterations before the given one."""
        records = dict(self._records)
        since, results = self._pending
        for result in results if since < iteration else ():
            games, won = records.get((result.opponent, result.side), (0.0, 0.0))
            records[result.opponent, result.side] = self.decay * games + 1, self.decay * won + result.won
        return records

    def share(self, opponent: str, side: str) -> float:
        """Return the learner's win rate against an opponent from a side."""
        games, won = self._records.get((opponent, side), (0.0, 0.0))
        return (won + 1) / (games + 2)

    def chances(self, opponents: Sequence[str], side: str) -> list[float]:
        """Return the probability of each opponent."""
        return probabilities([self.share(opponent, side) for opponent in opponents], self.matching)

    def draw(self, opponents: Sequence[str], side: str, generator: np.random.Generator) -> str:
        """Draw an opponent for a side of the learner."""
        return opponents[int(generator.choice(len(opponents), p=self.chances(opponents, side)))]

    def metrics(self, opponents: Mapping[str, str], sides: Iterable[str]) -> dict[str, float]:
        """Return win rates and probabilities.

        Args:
            opponents: Opponent -> name in metrics.
            sides: The sides of the game.
        """
        found: dict[str, float] = {}
        for side in sides:
            for (name, called), chance in zip(opponents.items(), self.chances([*opponents], side), strict=True):
                found[f"self_play/win_share_as_{side}_vs_{called}"] = self.share(name, side)
                found[f"self_play/match_probability_as_{side}_vs_{called}"] = chance
        return found

    def save(self, folder: Path, kept: Sequence[int]) -> None:
        """Write the records of the newest checkpoint, and delete those of deleted checkpoints.

        Args:
            folder: Folder of records.
            kept: Iterations of the checkpoints, ascending.
        """
        folder.mkdir(parents=True, exist_ok=True)
        records = [
            {"opponent": opponent, "side": side, "games": games, "won": won}
            for (opponent, side), (games, won) in self._counted(kept[-1]).items()
        ]
        write_json(_file(folder, kept[-1]), {"records": records})
        for path in folder.glob("[0-9]*.json"):
            if path.stem not in {_file(folder, iteration).stem for iteration in kept}:
                path.unlink()

    def load(self, folder: Path, iteration: int) -> None:
        """Restore the records of a checkpoint, or of the previous one if a kill prevented their writing.

        Raises:
            CheckpointError: They are damaged.
        """
        self._records, self._pending = {}, (iteration, [])
        stored = [path for path in sorted(folder.glob("[0-9]*.json")) if path.stem <= _file(folder, iteration).stem]
        if not stored:
            return
        path = stored[-1]
        try:
            content = read_json(path)
            self._records = {
                (str(record["opponent"]), str(record["side"])): _checked(float(record["games"]), float(record["won"]))
                for record in content["records"]
            }
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"the results against opponents in {path} are damaged ({type(error).__name__}): delete the file, and "
                "the run continues with earlier ones."
            ) from error


def _checked(games: float, won: float) -> tuple[float, float]:
    """Return a validated record; raise ValueError if it is impossible."""
    if not 0 <= won <= games < math.inf:
        raise ValueError(f"{won} of {games} games won")
    return games, won


def _file(folder: Path, iteration: int) -> Path:
    return folder / f"{iteration:06d}.json"
