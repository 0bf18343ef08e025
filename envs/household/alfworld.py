"""ALFWorld: the household games of Shridhar et al. 2021 (arXiv 2010.03768), played on our own engine.

The engine gives the same text as TextWorld's engine for these games, and allows the same commands, without a planner or
grammar in the loop; the games themselves are read from the user's disk.
"""

from __future__ import annotations

from typing import Literal

from turngym.envs.core import Outcome
from turngym.envs.household.alfworld_games import FOLDS, find_data, open_games, read_game
from turngym.envs.household.home import HomeEnv
from turngym.envs.household.rules import House, canonical
from turngym.envs.settings import worded
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.types import JSONValue

_FOLD_NAMES = {fold: split for split, fold in FOLDS.items()}
_OFF = -1


class ALFWorld(HomeEnv):
    """Games of the ALFWorld data set.

    Observations, commands and success are those of ALFWorld's text engine; besides its ``move X to Y``, the older ``put
    X in/on Y`` is understood. As in ALFWorld, the list of commands includes objects behind a closed door that could be
    sliced or switched on.
    """

    class Options(HomeEnv.Options):
        data: str = ""
        """Folder of the games, in the official layout or the compact one (see
        :mod:`turngym.envs.household.alfworld_games`); empty for the environment variable ``ALFWORLD_DATA``."""
        expert: Literal["explorer", "planner"] = "planner"
        """``"planner"``: the game's walkthrough as long as it was followed, then our planner; or ``"explorer"``, which
        uses only what the agent can know."""

        def check(self) -> None:
            object.__setattr__(self, "split", _FOLD_NAMES.get(self.split, self.split))  # one name for each fold

    options: Options

    file_options = worded("kind", "expert")

    _sink = "sinkbasin"

    def setup(self) -> None:
        options = self.options
        super().setup()
        self._folder, self._fold = find_data(options.data), FOLDS[self.split]
        games = open_games(self._folder, self._fold)
        self._names = tuple(name for name, each in games.kinds.items() if each in options.kinds)
        if not self._names:
            raise ConfigError(f"{self._folder} has no game of the kind {options.kind!r} in the fold {self._fold!r}.")

    def tasks(self) -> tuple[str, ...]:
        """Return the names of the split's games: the task's folder and the trial's."""
        return self._names

    def begin(self, task: str | int | None) -> str:
        house = self._house_of({"name": self._name(task), "followed": 0})
        self.instance = self._played.name
        self._enter(house)
        return f"{self._played.welcome}{house.look()}\n\n{house.world.task}"

    def _name(self, task: str | int | None) -> str:
        if task is None:
            return self._names[int(self.np_random.integers(len(self._names)))]
        if isinstance(task, str):
            if task not in self._names:
                raise UnknownName(f"{self.env_id} has no task named {task!r}. {nearest(task, self._names)}")
            return task
        self.require("the task", task, 0, len(self._names) - 1)
        return self._names[int(task)]

    def _house_of(self, game: JSONValue) -> House:
        self._played = read_game(self._folder, self._fold, game["name"])
        self._followed = int(game["followed"])
        return House(self._played.world, self._played.help_text, relists=False)

    def _game(self) -> JSONValue:
        return {"name": self._played.name, "followed": self._followed}

    def apply_action(self, action: str) -> Outcome[str]:
        outcome = super().apply_action(action)
        if self._followed != _OFF:
            walk = self._played.walkthrough
            is_next = self._followed < len(walk) and canonical(action) == walk[self._followed]
            self._followed = self._followed + 1 if is_next else _OFF
        return outcome

    def _plan(self) -> str | None:
        if 0 <= self._followed < len(self._played.walkthrough):
            return self._played.walkthrough[self._followed]
        return super()._plan()
