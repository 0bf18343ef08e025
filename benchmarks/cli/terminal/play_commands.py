"""Commands after a colon in ``turngym play``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from turngym.benchmarks.cli.terminal.play_screen import Screen
from turngym.benchmarks.cli.terminal.play_session import Left, NoSuchCommand, Session
from turngym.errors import nearest

COMMANDS = {
    "legal": "show the legal actions",
    "hint": "show what the expert would do",
    "undo": "take back the last turn; :undo 3 takes back three",
    "look": "show the observation again",
    "restart": "begin this task again; :restart 7 begins the task of seed 7",
    "next": "begin another task",
    "save": "write the transcript so far, which replays to the same bytes; :save FILE names the file",
    "rules": "show the instructions again",
    "help": "show this list",
    "quit": "leave; so does the end of the input",
}
"""Name -> what it does."""


class Table:
    """Runs what was typed.

    Args:
        session: The episode.
        screen: Display.
        fresh_seed: Draws the seed of another task.
    """

    def __init__(self, session: Session, screen: Screen, fresh_seed: Callable[[], int]) -> None:
        self.session, self.screen, self._fresh_seed = session, screen, fresh_seed

    def run(self, line: str) -> None:
        """Run one line that starts with a colon.

        Raises:
            NoSuchCommand: There is no such command, or it takes no such argument.
            ConfigError: It cannot be done here.
            Left: It is time to go.
        """
        word, _, argument = line[1:].strip().partition(" ")
        name, argument = _meant(word.lower()), argument.strip()
        if argument and name not in ("undo", "restart", "save"):
            raise NoSuchCommand(f":{name} takes nothing after it, got {argument!r}.")
        getattr(self, f"_{name}")(argument)

    def _legal(self, argument: str) -> None:
        self.screen.legal(self.session.info["legal_actions"])

    def _hint(self, argument: str) -> None:
        if self.session.is_over:
            raise NoSuchCommand("The episode is over: there is nothing to hint at.")
        self.screen.note(f"the expert would say: {self.session.hint()}")

    def _undo(self, argument: str) -> None:
        count = self.session.undo(_number(argument, "undo") if argument else 1)
        if not count:
            raise NoSuchCommand("There is nothing to take back.")
        self.screen.note(f"took back {count} turn{'s' if count > 1 else ''}")
        self._look("")

    def _look(self, argument: str) -> None:
        self.screen.state(self.session, is_interactive=True)

    def _restart(self, argument: str) -> None:
        self._begin(_number(argument, "restart") if argument else self.session.seed)

    def _next(self, argument: str) -> None:
        self._begin(self._fresh_seed())

    def _begin(self, seed: int) -> None:
        self.session.begin(seed)
        self.screen.note(f"seed {seed}")
        self._look("")

    def _save(self, argument: str) -> None:
        path = Path(argument or self.session.file_name())
        self.session.save(path)
        self.screen.note(f"saved {path}")

    def _rules(self, argument: str) -> None:
        self.screen.line(self.session.env.instructions)

    def _help(self, argument: str) -> None:
        self.screen.commands({f":{name}": sentence for name, sentence in COMMANDS.items()})
        self.screen.note("Everything else is the action; one that begins with a colon is written with two.")

    def _quit(self, argument: str) -> None:
        raise Left


def _meant(word: str) -> str:
    """Return the command that a word stands for; its first letters are enough.

    >>> _meant("legal"), _meant("u")
    ('legal', 'undo')
    """
    fitting = [word] if word in COMMANDS else [name for name in COMMANDS if word and name.startswith(word)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise NoSuchCommand(f":{word} can be {' or '.join(f':{name}' for name in fitting)}.")
    hint = nearest(f":{word}", [f":{name}" for name in COMMANDS])
    raise NoSuchCommand(f"no command named :{word}. {hint} :help shows what they do.")


def _number(argument: str, command: str) -> int:
    if not (argument.isascii() and argument.isdecimal()) or len(argument) > 18:
        raise NoSuchCommand(f":{command} takes a whole number, such as :{command} 3, got {argument!r}.")
    return int(argument)
