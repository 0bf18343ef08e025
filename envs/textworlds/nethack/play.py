"""Shared by NetHack and MiniHack: commands in words, observations, anchors and snapshots."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any

from turngym.envs.core import Outcome, TextEnv
from turngym.envs.textworlds.nethack.engine import Game
from turngym.envs.textworlds.nethack.paths import Cell
from turngym.envs.textworlds.nethack.view import at, inventory, near, near_map, status, whole_map
from turngym.envs.textworlds.nethack.words import DIRECTIONS, Command, commands_of, parse
from turngym.envs.textworlds.replay import require_same
from turngym.errors import EpisodeOver
from turngym.options import between
from turngym.types import JSONValue

_DIRECTED = ("far", "attack", "open", "close", "kick", "chat", "untrap", "fire")
_ALONE = ("up", "down", "search", "wait", "look", "inventory", "pick up", "pay", "pray", "loot", "offer", "sit", "swap")
_USES = {
    2: ("wield", "throw"),
    3: ("wear", "take off"),
    4: ("put on", "remove"),
    5: ("put on", "remove"),
    6: ("apply",),
    7: ("eat",),
    8: ("drink",),
    9: ("read",),
    10: ("read",),
    11: ("zap",),
}
"""Class of things of the package -> commands."""


def _lower(word: str) -> str:
    """Return a word in lower case, but a letter of the inventory as it is: A is another thing than a."""
    return word if len(word) == 1 else word.casefold()


class Words(TextEnv[str]):
    """A game of NetHack in words."""

    class Options(TextEnv.Options):
        commands: Annotated[int, between(1, 20)] = 1
        """Commands that an action may hold, separated by commas."""

    options: Options
    longest_action = 1_000

    def take(self, game: Game) -> None:
        """Take a game to play, with the keys that its task allows."""
        self._game = game
        self._allowed = commands_of(game.keys)

    def enter(self, seed: int) -> str:
        """Start a game and return the first observation."""
        self._game.enter(seed)
        self._seed, self._played, self._spent = seed, list[str](), 0
        self._shown = self._state = ""
        self._look()
        return self._tell(self._game.said)

    @property
    def here(self) -> Cell:
        """Column and row of the player."""
        return self._here

    def _look(self) -> None:
        """Note the state of the game, unless it is over: its screen is another one then."""
        game = self._game
        numbers = game.part("blstats")
        if (game.is_over and not game.is_solved) or not int(numbers[11]):
            return
        self._here, self._turns = at(numbers), int(numbers[20])
        self._hit_points, self._depth = int(numbers[10]), int(numbers[24])
        self._glyphs = game.part("glyphs").copy()
        self._level = int(numbers[12]), int(numbers[23])
        self._has = [(int(a), int(b)) for a, b in zip(game.part("inv_letters"), game.part("inv_oclasses"), strict=True)]
        chars, lines = game.part("chars"), [status(numbers)]
        lines.append(f"Near: {near(self._glyphs, game.part('screen_descriptions'), self._here)}.")
        held = f"You have: {inventory(game.part('inv_letters'), game.part('inv_strs'))}."
        self._shown = "\n".join([*lines, near_map(chars, self._here)])
        self._state = "\n".join([*lines, held, *(row for row in whole_map(chars) if row), f"at {self._here}"])

    def _tell(self, said: list[str]) -> str:
        return "\n".join([*(each for each in said if each), f"Turn {self._turns}, {self._shown}"])

    def _understood(self, action: str) -> list[Command] | str:
        """Return the commands of an action, or why it is none."""
        texts = [" ".join(map(_lower, each.split())) for each in action.split(",")]
        if len(texts) > self.options.commands:
            return f"That is {len(texts)} commands, and an action holds at most {self.options.commands}."
        found = [parse(text, self._allowed) for text in texts]
        unknown = [text for text, each in zip(texts, found, strict=True) if each is None]
        if unknown:
            return f"That is no command here: {unknown[0][:40]!r}."
        return [each for each in found if each is not None]

    def apply_action(self, action: str) -> Outcome[str]:
        if self._game.is_closed:
            raise EpisodeOver(f"{self.env_id} was closed in mid-episode: call reset() first.")
        commands = self._understood(action)
        if isinstance(commands, str):
            return Outcome(f"{commands}\n{self._tell([])}", action_is_valid=False)
        return self.judge(self._tell(self._follow(action, commands)))

    def _follow(self, action: str, commands: list[Command]) -> list[str]:
        """Play commands until one of them hurts the player, changes the level or ends the episode."""
        said: list[str] = []
        self._played.append(action)
        for number, command in enumerate(commands):
            health, level = self._hit_points, self._level
            said += self._game.act(command.keys, command.answers)
            self._spent += command.times
            self._look()
            self.watch(command)
            if self._game.is_over:
                said += ["The game is over."] * (not self._game.is_solved)
                break
            left = len(commands) - number - 1
            if left and (self.is_over() or self._hit_points < health or self._level != level):
                said.append(f"You stop: {left} of {len(commands)} commands were not carried out.")
                break
        return said

    def watch(self, command: Command) -> None:
        """Note a command that was carried out, for an expert that remembers."""

    @abstractmethod
    def judge(self, text: str) -> Outcome[str]:
        """Return the outcome of an action, given what the player is shown."""

    def anchor(self) -> str:
        return self._state

    def legal_actions(self) -> tuple[str, ...]:
        allowed = self._allowed
        found = [name for name in (*DIRECTIONS, *_ALONE) if name in allowed]
        found += [f"{verb} {name}" for verb in _DIRECTED if verb in allowed for name in DIRECTIONS]
        for letter, kind in self._has:
            found += [f"{verb} {chr(letter)}" for verb in _USES.get(kind, ()) if letter and verb in allowed]
        return tuple(found)

    def save_state(self) -> JSONValue:
        return {"seed": self._seed, "actions": list(self._played), **self._reached_state()}

    def _reached_state(self) -> dict[str, Any]:
        return {"last": self._state, "turns": self._turns}

    def load_state(self, state: JSONValue) -> None:
        seed, actions = state["seed"], state["actions"]
        if type(seed) is not int or not 0 <= seed < 2**31 or self.name_of(seed) != self.instance:
            raise ValueError(f"the seed {str(seed)[:50]!r}")
        if not isinstance(actions, list) or len(actions) > self.turn:
            raise ValueError("the actions")
        self.enter(seed)
        for action in actions:
            commands = self._understood(action) if isinstance(action, str) else ""
            if isinstance(commands, str) or self.is_over():
                raise ValueError("an action")
            self._follow(action, commands)
        require_same(self, self._reached_state(), state)

    @abstractmethod
    def name_of(self, seed: int) -> str:
        """Return the canonical text of the instance of a seed."""

    @abstractmethod
    def is_over(self) -> bool:
        """Return whether the episode is over."""
