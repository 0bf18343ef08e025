"""Interactive fiction: any Z-machine story file, through jericho (Hausknecht et al. 2020).

Source: arXiv 1909.05398. turngym includes no story. The interpreter's random numbers are fixed, so a story is one task.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from pathlib import Path
from typing import Any

from turngym.envs.core import UNBOUNDED, MaxTurns, Outcome, TextEnv
from turngym.envs.textworlds.replay import require_same
from turngym.envs.textworlds.story import Damaged, read_story
from turngym.envs.textworlds.textworld.text import tidy
from turngym.envs.validation import require_running
from turngym.errors import ConfigError, MissingExtra, UnknownName, missing_extra
from turngym.types import JSONValue

VARIABLE = "JERICHO_STORY"
NOT_FOR_PLAY = "That command is about the program, not the story."
_SEED = 1
_LONGEST = 190
_META = frozenset(
    ("quit", "q", "restart", "restore", "save", "undo", "script", "unscript", "transcript", "record", "unrecord")
)
_SENTENCES = re.compile(r"[.;,]|\bthen\b")
_NOT_UNDERSTOOD = re.compile(
    r"(not a verb I|I don't know the word|I don't understand|I didn't understand|I only understood|I beg your pardon|"
    r"can't see any such|isn't one I recogni[sz]e|There was no verb|used the word|That noun did not make sense|"
    r"You seem to have said too little|Sorry, I|Beg pardon)",
    re.IGNORECASE,
)
_BANNER = re.compile(r"(?<!\*)\*{3,}+\s*+((?:[^*\n]|\*(?!\*\*))++)\s*\*{3}")
_POINTS = re.compile(
    r"(?:scored|score is) (-?\d++)(?:(?!(?:scored|score is) -?\d)[^.])*?(?:out of a possible|total of|out of) (\d+)"
)
_WON = re.compile(r"\b(won|the end|victory)\b", re.IGNORECASE)
_RULES = """You play a story by typing commands, one a turn: a verb and what it is about, such as: look, inventory, \
examine lamp, take lamp, open door, north, give coin to troll, ask guard about key."""


class Jericho(TextEnv[str]):
    """Play an interactive fiction story file.

    The reward of a turn is the change of the story's points; the score is the points, the progress their share of the
    maximum. For stories that it knows, jericho reads points, victory and end from memory. For others they are parsed
    from the text: the answer to ``score``, and the final line between asterisks. The anchor is the output of ``look``
    and ``inventory``. Legal actions are not listed. Commands about the program, such as ``save``, are not passed on.
    """

    class Options(TextEnv.Options):
        story: str = ""
        """The story file; empty for the environment variable ``JERICHO_STORY``."""
        max_turns: MaxTurns = 100

    options: Options

    finite_instances = 1
    score_range = UNBOUNDED
    instructions = _RULES

    def setup(self) -> None:
        try:
            import jericho
        except ImportError as error:
            raise missing_extra("interactive fiction", "jericho", "jericho") from error
        self._path = _find_story(self.env_id, self.options.story)
        content = _read(self.env_id, self._path)
        self.instance = self._name = f"{self._path.name} {hashlib.sha256(content).hexdigest()[:16]}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", jericho.UnsupportedGameWarning)
            self._machine = jericho.FrotzEnv(str(self._path))
            known = self._machine.bindings
            self._machine.seed(known.get("seed", _SEED) if known else _SEED)
        self._is_known = bool(self._machine.is_fully_supported)
        self._walkthrough: tuple[str, ...] = tuple(known["walkthrough"].split("/")) if known and self._is_known else ()
        self._points = self._max_score = 0
        self._actions: list[str] = []

    def tasks(self) -> tuple[str, ...]:
        """Return the name of the story's file."""
        return (self._path.name,)

    def begin(self, task: str | int | None) -> str:
        if task not in (None, 0, self._path.name):
            raise UnknownName(f"{self.env_id} has no task named {task!r}. There is one: {self._path.name!r}.")
        self._enter()
        return self._text

    def _enter(self) -> None:
        self.instance = self._name
        self._actions = []
        self._text = tidy(self._machine.reset()[0])
        self._points, self._is_over, self._is_won = 0, False, False
        self._max_score = int(self._machine.get_max_score()) if self._is_known else 0
        self._look()

    def _look(self) -> None:
        """Note what looking, the inventory and the score say, and leave the story as it is."""
        state = self._machine.get_state()
        self._seen = f"{self._ask('look', state)}\n\n{self._ask('inventory', state)}"
        if self._is_known:
            self._points = int(self._machine.frotz_lib.get_score())
        else:
            self._read_points(self._ask("score", state))

    def _ask(self, command: str, state: Any) -> str:
        text = tidy(self._machine.step(command)[0])
        self._machine.set_state(state)
        return text

    def _read_points(self, text: str) -> None:
        if found := _POINTS.search(text):
            self._points, self._max_score = int(found[1]), int(found[2])

    def _follow(self, action: str) -> None:
        text, _, is_over, _ = self._machine.step(action)
        self._actions.append(action)
        self._text = tidy(text)
        if self._is_known:
            self._is_over, self._is_won = bool(is_over), bool(self._machine.victory())
            self._points = int(self._machine.frotz_lib.get_score())
        elif banner := _BANNER.search(text):
            self._is_over, self._is_won = True, _WON.search(banner[1]) is not None
            self._read_points(text)
        if not self._is_over:
            self._look()

    def apply_action(self, action: str) -> Outcome[str]:
        command = _clean(action)
        if not command:
            return Outcome("Write a command.", action_is_valid=False)
        if any(_is_meta(sentence) for sentence in _SENTENCES.split(command)):
            return Outcome(NOT_FOR_PLAY, action_is_valid=False)
        before = self._points
        self._follow(command)
        is_valid = _NOT_UNDERSTOOD.search(self._text) is None
        return Outcome(self._text, float(self._points - before), self._is_over, self._is_won, is_valid)

    def anchor(self) -> str:
        """Return what looking and the inventory would say, and the points."""
        return f"{self._seen}\n\n{self._points} points"

    def progress(self) -> float:
        if self._is_won:
            return 1.0
        return min(max(self._points / self._max_score, 0.0), 1.0) if self._max_score > 0 else float("nan")

    def score(self) -> float:
        return float(self._points)

    def expert_action(self) -> str:
        """Return the next command of the walkthrough that jericho has for the stories that it knows.

        Raises:
            ConfigError: No episode is under way; there is no walkthrough, or it was left.
        """
        require_running(self)
        done = len(self._actions)
        if not self._walkthrough or list(map(_clean, self._walkthrough[:done])) != self._actions:
            why = "has left its walkthrough" if self._walkthrough else "has no walkthrough that jericho knows"
            raise ConfigError(f"{self.env_id} has no expert action: the story {self._path.name} {why}.")
        if done >= len(self._walkthrough):
            raise ConfigError(f"the walkthrough of {self._path.name} has come to its end.")
        return self._walkthrough[done]

    def save_state(self) -> JSONValue:
        return {"actions": list(self._actions), "last": self._text, "seen": self._seen, "points": self._points}

    def load_state(self, state: JSONValue) -> None:
        self._enter()
        for action in state["actions"]:
            self._follow(action)
        require_same(self, {"last": self._text, "seen": self._seen, "points": self._points}, state)


def _clean(action: str) -> str:
    """Return a command as the interpreter can take it: one line of printable ASCII, not too long."""
    line = " ".join(action.split())
    return "".join(letter for letter in line if " " <= letter <= "~")[:_LONGEST].strip()


def _is_meta(sentence: str) -> bool:
    word = sentence.strip().partition(" ")[0].casefold()
    return word in _META or word.startswith(("tw-", "#", "$"))


def _find_story(env_id: str, story: str) -> Path:
    given = story or os.environ.get(VARIABLE, "")
    path = Path(given).expanduser()
    if given and path.is_file():
        return path
    said = f"{str(path)!r} is not a file" if given else f"neither story=... nor {VARIABLE} names one"
    raise MissingExtra(
        f'{env_id} needs a story file of yours, such as story="zork1.z3", and {said}: many are free at '
        "https://ifarchive.org, and TextWorld's tw-make writes them."
    )


def _read(env_id: str, path: Path) -> bytes:
    try:
        return read_story(path)
    except (OSError, Damaged) as error:
        raise ConfigError(
            f"{env_id} cannot play {path}: {error}. It takes files .z1 to .z8; download it again."
        ) from error
