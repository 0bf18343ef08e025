"""Screen of ``turngym play``."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.columns import Columns
from rich.table import Table
from rich.text import Text

from turngym.benchmarks.cli.terminal.play_session import Session
from turngym.terminal.console import Console
from turngym.text import printable
from turngym.trainers.core.wording import counted

_MOST_LEGAL = 200
_MOST_RECORDED = 10


class Screen:
    """Shows an episode in a terminal, or as plain text if there is none.

    Args:
        console: The terminal.
    """

    def __init__(self, console: Console) -> None:
        self.console = console

    def opening(self, session: Session, *, is_interactive: bool) -> None:
        """Show what is played, the instructions and the first observation."""
        self.line(f"{session.env.env_id}, seed {session.seed}", "bold")
        self.line(session.env.instructions, "dim")
        if is_interactive:
            self.line(":help shows what else you can type, :legal what you can do now", "dim cyan")
        self.recorded(session)
        self.state(session, is_interactive=is_interactive)

    def recorded(self, session: Session) -> None:
        """Show the last turns before the recorded state that an episode has just been continued from."""
        turns = session.recorded
        left_out = max(0, len(turns) - _MOST_RECORDED)
        if left_out:
            self.note(f"{counted(left_out, 'earlier recorded turn')} not shown")
        for number in range(left_out, len(turns)):
            self.console.rule(f"turn {number + 1}, recorded")
            self.line(turns[number].observation)
            self.action(turns[number].action)
            self.line(f"reward {session.turns[number].reward:g}", "dim")

    def state(self, session: Session, *, is_interactive: bool) -> None:
        """Show the observation, and the outcome after the end."""
        turns = len(session.turns)
        if session.is_over:
            self.observation(session)
            info = session.info
            is_solved = info["success"] == 1
            verdict = "solved" if is_solved else "turn limit reached" if session.is_truncated else "not solved"
            style = "bold green" if is_solved else "bold red"
            self.line(f"{verdict} after {turns} turns: return {session.total:g}, score {info['score']:g}", style)
            if is_interactive:
                self.line(":save FILE keeps the transcript; :undo, :restart, :next, or Enter to leave", "dim cyan")
        else:
            self.console.rule(f"turn {turns + 1}")
            self.observation(session)

    def observation(self, session: Session) -> None:
        """Show the observation: its text, and the image if there is one."""
        picture: Any = session.env.render()
        if isinstance(picture, np.ndarray):
            width = min(64, self.console.width)
            self.console.print(half_blocks(picture, width, 2 * max(8, self.console.height - 12)), end="")
        self.line(session.text)

    def turn(self, session: Session) -> None:
        """Show the result of the last action."""
        note = "" if session.info["action_is_valid"] else "  (not a valid action)"
        reward = session.turns[-1].reward
        self.line(f"reward {reward:g}, return {session.total:g}{note}", "yellow" if note else "dim")

    def action(self, action: str) -> None:
        """Show what an agent does."""
        self.line(f"action> {action}", "cyan")

    def completion(self, text: str) -> None:
        """Show what a model wrote, of which its action is a part."""
        self.line(printable(text, keep="\n\t"), "dim")

    def legal(self, actions: tuple[str, ...]) -> None:
        """Show the legal actions."""
        if not actions:
            self.note("There is no list of legal actions here: the instructions tell the form of an answer.")
            return
        shown = [Text(action, style="cyan") for action in actions[:_MOST_LEGAL]]
        self.console.print(Columns(shown, padding=(0, 2)))
        if len(actions) > _MOST_LEGAL:
            self.note(f"and {len(actions) - _MOST_LEGAL} more")

    def commands(self, sentences: dict[str, str]) -> None:
        """Show what can be typed after a colon."""
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for name, sentence in sentences.items():
            table.add_row(Text(name, style="cyan"), Text(sentence))
        self.console.print(table)

    def note(self, text: str) -> None:
        """Show a remark that is not part of the game."""
        self.line(text, "cyan")

    def problem(self, text: str) -> None:
        """Show why something cannot be done."""
        self.line(text, "yellow")

    def line(self, text: str, style: str = "") -> None:
        """Show a text as it is."""
        self.console.print(_printable(text), style=style, markup=False, soft_wrap=True)


def _printable(text: str) -> str:
    """Escape what a terminal would act on or cannot show: control characters and lone surrogates."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode("ascii") for c in text)


_UPPER_HALF = "\N{UPPER HALF BLOCK}"


def shrunk(picture: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """Return an image that fits, each pixel the mean of a square of the original.

    Args:
        picture: uint8 [H, W, 3].
        width: Maximum pixels in a row.
        height: Maximum number of rows.

    Returns:
        uint8 [h, w, 3]; the picture itself if it fits already.

    >>> shrunk(np.array([[[0, 0, 0], [100, 0, 0]]] * 2, np.uint8), 1, 1).tolist()
    [[[50, 0, 0]]]
    """
    side = max(1, math.ceil(picture.shape[1] / width), math.ceil(picture.shape[0] / height))
    if side == 1:
        return picture
    below, beside = -picture.shape[0] % side, -picture.shape[1] % side
    whole = np.pad(picture, ((0, below), (0, beside), (0, 0)), mode="edge")
    squares = whole.reshape(whole.shape[0] // side, side, whole.shape[1] // side, side, 3)
    return np.asarray(squares.mean(axis=(1, 3)).round(), np.uint8)


def half_blocks(picture: NDArray[np.uint8], width: int = 64, height: int = 64) -> Text:
    """Return an image as coloured text, one line for two rows of pixels.

    Args:
        picture: uint8 [H, W, 3].
        width: Maximum characters in a line.
        height: Maximum pixels from top to bottom, twice the lines.
    """
    small = shrunk(picture, width, height)
    if len(small) % 2:
        small = np.concatenate([small, np.zeros_like(small[:1])])
    text = Text()
    for upper, lower in zip(small[0::2].tolist(), small[1::2].tolist(), strict=True):
        columns = zip(upper, lower, strict=True)
        for (top, bottom), run in itertools.groupby(columns):  # equal neighbours share one escape sequence
            text.append(_UPPER_HALF * len(list(run)), style=f"rgb({_rgb(top)}) on rgb({_rgb(bottom)})")
        text.append("\n")
    return text


def _rgb(pixel: list[int]) -> str:
    return ",".join(map(str, pixel))
