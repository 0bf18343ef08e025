"""Treasure Hunt: find a hidden treasure with two tools; the picture shows what they told."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from turngym.envs import Outcome, PictureEnv, ToolEnv, tool, tool_call
from turngym.envs.settings import worded
from turngym.types import JSONValue

SIZE, PIXELS = 16, 6


class TreasureHunt(ToolEnv, PictureEnv):
    """A treasure in a field of cells, found with a probe and a spade."""

    class Options(PictureEnv.Options):
        """Options, which are checked when an environment is made."""

        max_turns: int = 12
        """Turns after which the episode is truncated."""

    options: Options
    file_options = worded()  # submissions may set numbers and truth values

    def setup(self) -> None:
        """Write the rules; the declarations of the tools are added to them."""
        self.set_frame(SIZE * PIXELS, SIZE * PIXELS)
        self.instructions = (
            f"A treasure is hidden in a field of {SIZE} rows and {SIZE} columns, both counted from 0. "
            f"Dig it up in at most {self.max_turns} turns. In the picture, darker cells are nearer to it."
        )

    def initial_state(self, generator: np.random.Generator) -> JSONValue:
        """Hide the treasure."""
        return {"treasure": [int(each) for each in generator.integers(SIZE, size=2)], "probed": []}

    def observation(self) -> str:
        """Return everything that is known."""
        known = [f"{row} {column}: {steps} steps away" for row, column, steps in self.state["probed"]]
        return "Probed: " + ("; ".join(known) or "nothing") + "."

    def anchor(self) -> str:
        """Return the same for equal knowledge."""
        return self.observation()

    def render_image(self) -> NDArray[np.uint8]:
        """Draw the field."""
        image = np.full((SIZE, SIZE, 3), (90, 160, 90), np.uint8)
        for row, column, steps in self.state["probed"]:
            image[row, column] = (8 * steps, 8 * steps, 30)
        return image.repeat(PIXELS, 0).repeat(PIXELS, 1)

    @tool
    def probe(self, row: int, column: int) -> Outcome[str] | None:
        """Tell how many steps a cell is away from the treasure: rows plus columns.

        Args:
            row: Row of the cell, 0 to 15.
            column: Column of the cell, 0 to 15.
        """
        if not (0 <= row < SIZE and 0 <= column < SIZE):
            return Outcome("There is no such cell.", action_is_valid=False)
        self.state["probed"] = [*self.state["probed"], [row, column, self._steps(row, column)]]
        return None  # the next observation

    @tool
    def dig(self, row: int, column: int) -> Outcome[str]:
        """Dig in a cell; a wrong one ends the hunt.

        Args:
            row: Row of the cell, 0 to 15.
            column: Column of the cell, 0 to 15.
        """
        found = self._steps(row, column) == 0
        return Outcome("The treasure!" if found else "Nothing is here.", float(found), True, found)

    def _steps(self, row: int, column: int) -> int:
        treasure = self.state["treasure"]
        return abs(row - int(treasure[0])) + abs(column - int(treasure[1]))

    def _candidates(self) -> list[tuple[int, int]]:
        """Return the cells that fit everything that was probed."""
        probed = self.state["probed"]
        cells = [(row, column) for row in range(SIZE) for column in range(SIZE)]
        return [cell for cell in cells if all(abs(cell[0] - r) + abs(cell[1] - c) == steps for r, c, steps in probed)]

    def expert_action(self) -> str:
        """Probe until one cell is left, then dig there."""
        left = self._candidates()
        return tool_call("dig" if len(left) == 1 else "probe", row=left[0][0], column=left[0][1])

    def resample_hidden(self) -> bool:
        """Hide the treasure in another cell that fits, for the leak check."""
        others = [list(cell) for cell in self._candidates() if list(cell) != self.state["treasure"]]
        if others:
            self.state["treasure"] = others[int(self.np_random.integers(len(others)))]
        return bool(others)
