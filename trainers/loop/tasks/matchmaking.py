"""Prioritised fictitious self-play: opponents are drawn by how the learner does against them.

The weights are those of AlphaStar's league (Vinyals et al. 2019, Nature 575, and its pseudocode), with ``p`` the share
of games that the learner wins: ``1 - p`` (linear), ``(1 - p)^2`` (squared), ``p (1 - p)`` (variance: opponents of equal
strength), ``min(1/2, 1 - p)`` (linear_capped). Shares are kept for each opponent and each side that the learner plays,
as sides do not have equal chances. Earlier games fade, since the learner changes.

One thing differs: a share is smoothed with one won and one lost game. So an opponent that was never met has
1/2, and one that was always beaten is still drawn now and then.
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
    """Return the probability with which each opponent is drawn; all equal where no weight is above 0.

    >>> probabilities([0.5, 0.75, 0.75], "linear")
    [0.5, 0.25, 0.25]

    Args:
        shares: The learner's share of won games against each.
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
        won: Whether the learner won; a draw is not won.
    """

    opponent: str
    side: str
    won: bool


class Matchmaking:
    """Keeps the learner's results against each opponent, and draws opponents by them.

    The results of an iteration count from the next one on, so that all its games are drawn from the same shares.

    Args:
        matching: Name of the weight.
        decay: Weight of an opponent's earlier games when another one has been played.
    """

    def __init__(self, matching: Matching, decay: float) -> None:
        self.matching, self.decay = matching, decay
        self._records: dict[tuple[str, str], tuple[float, float]] = {}
        """Opponent and side -> games and those won, faded."""
        self._pending: tuple[int, list[Result]] = (0, [])

    def begin(self, iteration: int, opponents: Iterable[str]) -> None:
        """Count the results of earlier iterations, and forget opponents that are no longer there."""
        self._records = self._counted(iteration)
        if self._pending[0] < iteration:
            self._pending = (iteration, [])
        known = set(opponents)
        self._records = {key: record for key, record in self._records.items() if key[0] in known}

    def note(self, iteration: int, results: Iterable[Result]) -> None:
        """Add results of an iteration that has started."""
        self._pending = (iteration, [*self._pending[1], *results])

    def _counted(self, iteration: int) -> dict[tuple[str, str], tuple[float, float]]:
        """Return the records with the results of the iterations before one."""
        records = dict(self._records)
        since, results = self._pending
        for result in results if since < iteration else ():
            games, won = records.get((result.opponent, result.side), (0.0, 0.0))
            records[result.opponent, result.side] = self.decay * games + 1, self.decay * won + result.won
        return records

    def share(self, opponent: str, side: str) -> float:
        """Return the learner's share of won games against an opponent from a side."""
        games, won = self._records.get((opponent, side), (0.0, 0.0))
        return (won + 1) / (games + 2)

    def chances(self, opponents: Sequence[str], side: str) -> list[float]:
        """Return the probability of each opponent."""
        return probabilities([self.share(opponent, side) for opponent in opponents], self.matching)

    def draw(self, opponents: Sequence[str], side: str, generator: np.random.Generator) -> str:
        """Draw an opponent for a side of the learner."""
        return opponents[int(generator.choice(len(opponents), p=self.chances(opponents, side)))]

    def metrics(self, opponents: Mapping[str, str], sides: Iterable[str]) -> dict[str, float]:
        """Return shares and probabilities.

        Args:
            opponents: Opponent -> what metrics call it.
            sides: The sides of the game.
        """
        found: dict[str, float] = {}
        for side in sides:
            for (name, called), chance in zip(opponents.items(), self.chances([*opponents], side), strict=True):
                found[f"self_play/win_share_as_{side}_vs_{called}"] = self.share(name, side)
                found[f"self_play/match_probability_as_{side}_vs_{called}"] = chance
        return found

    def save(self, folder: Path, kept: Sequence[int]) -> None:
        """Write the records of the newest checkpoint, and remove those of checkpoints that are gone.

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
        """Restore the records of a checkpoint, or of the one before if a kill came between it and its records.

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
    """Return a record; raises ValueError if it is not possible."""
    if not 0 <= won <= games < math.inf:
        raise ValueError(f"{won} of {games} games won")
    return games, won


def _file(folder: Path, iteration: int) -> Path:
    return folder / f"{iteration:06d}.json"
