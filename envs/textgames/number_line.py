"""Number Line: walk along the integers, one step up or down per turn, to a target."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, Reward
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.textgames import drawing
from turngym.envs.validation import refuse_task, require_running
from turngym.options import OptionError, between
from turngym.types import JSONValue

_STEPS = {"+": 1, "-": -1, "+1": 1, "-1": -1}
_SIDE, _COLUMNS = 28, 26
_UNKNOWN = "Unknown action: answer with + or -. "


def legal_steps(position: int, highest: int) -> tuple[str, ...]:
    """Return the steps that stay on the line from 0 to ``highest``.

    >>> legal_steps(0, 5), legal_steps(3, 5), legal_steps(5, 5)
    (('+',), ('+', '-'), ('-',))
    """
    if position == 0:
        return ("+",)
    return ("-",) if position == highest else ("+", "-")


def nth_pair(index: int, highest: int) -> tuple[int, int]:
    """Return start and target number ``index`` of the ``highest * (highest + 1)`` pairs of different numbers.

    >>> [nth_pair(index, 2) for index in range(6)]
    [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    """
    start, target = divmod(index, highest)
    return start, target + (target >= start)


@lru_cache(maxsize=8)
def _tiles(highest: int) -> drawing.Picture:
    """Return a tile for each number, then the player, the target, the player at the target, and an empty one."""
    tiles = []
    for number in range(highest + 1):
        tile = drawing.tile(_SIDE, drawing.WHITE, drawing.GREY)
        drawing.write(tile, str(number), drawing.BLACK)
        tiles.append(tile)
    player, target, both = (drawing.tile(_SIDE, drawing.WHITE, drawing.GREY) for _ in range(3))
    drawing.person(player, drawing.BLUE)
    drawing.flag(target, drawing.RED)
    drawing.flag(both, drawing.GREEN)
    return drawing.stack([*tiles, player, target, both, drawing.tile(_SIDE, drawing.GREY)])


class NumberLine(PictureEnv):
    """Walk along a number line to a target, with start and target uniform over pairs.

    The episode terminates at the target, which is the only success, and is truncated at ``max_turns``. A step off the
    line is not legal; it wastes a turn and leaves the position unchanged.

    >>> env = NumberLine()
    >>> env.reset(seed=0)[0], env.expert_action()
    ('You are at 5. The target is 0.', '-')
    """

    class Options(PictureEnv.Options):
        highest: Annotated[int, between(1, 1000)] = 5
        """Last number of the line, which starts at 0."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        away_reward: Reward = 0.0
        """Added in a turn that does not bring the player closer to the target."""
        solve_reward: Reward = 1.0
        """Reward for reaching the target."""
        max_turns: MaxTurns = 10
        """Turns after which the episode is truncated, at least ``highest``."""

        def check(self) -> None:
            if self.max_turns < self.highest:
                raise OptionError(
                    "max_turns",
                    f"is {self.max_turns}, but the way from 0 to {self.highest} takes {self.highest} turns: "
                    f"pass max_turns={self.highest} or a smaller highest.",
                )

    options: Options

    file_options = worded()
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            *("first legal", "last legal", "alphabetically first", "alphabetically last"),
            *("last winner's first action", "winners' most frequent action"),
        ),
        "walking in one direction reaches half of the targets, and random play turns back too often to get as far.",
    )

    def setup(self) -> None:
        options = self.options
        self.highest = options.highest
        self._columns = min(options.highest + 1, _COLUMNS)
        rows = -(-(options.highest + 1) // self._columns)
        self.set_frame(rows * _SIDE, self._columns * _SIDE)
        self.finite_instances = options.highest * (options.highest + 1)
        self.instructions = (
            f"You stand on a number line from 0 to {self.highest}. "
            f"Reach the target in at most {self.max_turns} turns.\n"
            "+ takes you one number up, - one number down. You cannot leave the line. Answer with + or - only."
        )

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        start, self._target = self.draw(
            lambda generator: nth_pair(int(generator.integers(self.highest * (self.highest + 1))), self.highest),
            lambda pair: f"{pair[0]} to {pair[1]} of {self.highest}",
        )
        self._distance = abs(start - self._target)
        self._stand(start)
        return self._board

    def _stand(self, position: int) -> None:
        self._position = position
        self._board = f"You are at {position}. The target is {self._target}."

    def apply_action(self, action: str) -> Outcome[str]:
        step = _STEPS.get(action.strip())
        if step is None:
            return Outcome(_UNKNOWN + self._board, self.options.step_reward, action_is_valid=False)
        before, target = self._position, self._target
        if 0 <= before + step <= self.highest:
            self._stand(before + step)
        if self._position == target:
            return Outcome(self._board, self.options.step_reward + self.options.solve_reward, True, True)
        is_nearer = abs(self._position - target) < abs(before - target)
        return Outcome(self._board, self.options.step_reward + (0.0 if is_nearer else self.options.away_reward))

    def anchor(self) -> str:
        return self._board

    def legal_actions(self) -> tuple[str, ...]:
        return legal_steps(self._position, self.highest)

    def progress(self) -> float:
        return max(0.0, 1 - abs(self._position - self._target) / self._distance)

    def render_text(self) -> str:
        marks = {self._target: "G", self._position: "P"}
        return "".join(marks.get(number, ".") for number in range(self.highest + 1)) + "\n" + self._board

    def render_image(self) -> NDArray[np.uint8]:
        player, target, both, empty = range(self.highest + 1, self.highest + 5)
        cells = [*range(self.highest + 1), *[empty] * (-(self.highest + 1) % self._columns)]
        cells[self._target] = target
        cells[self._position] = both if self._position == self._target else player
        return drawing.paint(_tiles(self.highest), cells, self._columns)

    def save_state(self) -> JSONValue:
        return {"position": self._position, "target": self._target, "distance": self._distance}

    def load_state(self, state: JSONValue) -> None:
        position, self._target, self._distance = state["position"], state["target"], state["distance"]
        if not (0 <= position <= self.highest and 0 <= self._target <= self.highest and self._distance >= 1):
            raise ValueError(f"position {position!r}, target {self._target!r}, distance {self._distance!r}")
        self._stand(position)

    def expert_action(self) -> str:
        """Return the step towards the target.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return "+" if self._position < self._target else "-"
