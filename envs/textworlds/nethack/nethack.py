"""NetHack (Kuettler et al. 2020, arXiv 2006.13760) in words: the whole game.

Dungeons and rules are those of the package nle; texts and expert are turngym's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from turngym.envs.core import MaxTurns, Outcome
from turngym.envs.settings import worded
from turngym.envs.textworlds.nethack import words
from turngym.envs.textworlds.nethack.descent import Memory, Script, Sight
from turngym.envs.textworlds.nethack.engine import Game, open_game
from turngym.envs.textworlds.nethack.play import Words
from turngym.envs.textworlds.nethack.progression import progression
from turngym.envs.textworlds.nethack.view import inventory
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import UnknownName, nearest
from turngym.options import between

DRAWN = "@"
"""Character that is drawn by the game."""
_ROLES = {
    "arc": "hum-law hum-neu dwa-law gno-neu",
    "bar": "hum-neu hum-cha orc-cha",
    "cav": "hum-law hum-neu dwa-law gno-neu",
    "hea": "hum-neu gno-neu",
    "kni": "hum-law",
    "mon": "hum-law hum-neu hum-cha",
    "pri": "hum-law hum-neu hum-cha elf-cha",
    "ran": "hum-neu hum-cha elf-cha gno-neu orc-cha",
    "rog": "hum-cha orc-cha",
    "sam": "hum-law",
    "tou": "hum-neu",
    "val": "hum-law hum-neu dwa-law",
    "wiz": "hum-neu hum-cha elf-cha gno-neu orc-cha",
}
"""Role -> races with alignments."""
CHARACTERS = tuple(
    f"{role}-{kind}-{gender}"
    for role, kinds in _ROLES.items()
    for kind in kinds.split()
    for gender in ("mal", "fem")
    if (role, gender) != ("val", "mal")
)
"""Role, race, alignment and gender of every character."""
_FOOD = 7
_RULES = """You play NetHack. Reach dungeon level {goal}: find the staircase down, >, on each level, and go down.
Answer with {commands} a turn: {names}.
far DIRECTION: walk until something is there; attack DIRECTION: hit what is there; open, close and kick DIRECTION: \
doors. Walking into a closed door opens it, unless it is locked. search 10: look for secret doors, or rest. Letters \
say which thing: eat d, wear e, zap f north; inventory shows them.
The map shows @ for you, . for floor, # for corridors, | and - for walls and open doors, + for closed doors, > for \
the staircase down, letters for creatures. Coins, potions, scrolls and wands are picked up by walking onto them. You \
have {turns} turns."""


class NetHack(Words):
    """Go down into the dungeon of NetHack, as deep as ``goal``.

    An episode is solved, and ends, at the dungeon level ``goal``, and it ends unsolved if the player dies. The reward
    is 1 for a solved episode; with ``reward="dense"`` it is the increase of the progress. The progress is the share of
    the levels down to ``goal`` that were reached. The score is the progression of BALROG (Paglieri et al. 2024, arXiv
    2411.13543), its figures rounded to four digits: of the games of people that came as deep, or to as high an
    experience level, the share that was won, the larger of both. Unlike in BALROG, an episode ends at ``goal``, and
    does not end after many turns without progress.

    A game follows from its seed, from which the three seeds of the package are drawn, and the seed decides its split.
    Options of the game are the package's; moon and hour follow from the seed too. Snapshots are restored by replay.
    Only keys of listed commands are pressed: nothing saves, quits, or leaves the game, and a question whether to
    attack a peaceful creature is answered by no.

    The expert is a script that sees what the player sees: it explores, hits what is near, rests, eats, prays once it is
    dying, searches for secret doors, and takes each staircase down. With default options it solves 73 of 100 test
    games, dies in 15 and runs out of turns in 12. Random play of one command a turn solves none of 100.
    """

    class Options(Words.Options):
        character: str = "mon-hum-neu-mal"
        """Role, race, alignment and gender, such as ``"val-dwa-law-fem"``; ``"@"`` for one that the game draws."""
        goal: Annotated[int, between(2, 50)] = 5
        """Dungeon level that solves the task."""
        reward: Literal["sparse", "dense"] = "sparse"
        """``"sparse"`` for 1 at a success, ``"dense"`` for the increase of the progress."""
        commands: Annotated[int, between(1, 20)] = 10
        """Commands that an action may hold, separated by commas."""
        max_turns: MaxTurns = 500

    options: Options

    file_options = worded(character="@|[a-z]{3}(-[a-z]{3}){3}")

    def setup(self) -> None:
        character, several = self.options.character, self.options.commands
        if character not in (DRAWN, *CHARACTERS):
            raise UnknownName(f"NetHack has no character {character!r}. {nearest(character, (DRAWN, *CHARACTERS))}")
        self.take(Game(partial(open_game, character)))
        self.instructions = _RULES.format(
            goal=self.options.goal,
            commands="one command" if several == 1 else f"up to {several} commands, separated by commas,",
            names=", ".join([*words.DIRECTIONS, *(each for each in words.VERBS if each in self._allowed)]),
            turns=self.max_turns,
        )

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        return self.enter(self.draw(lambda generator: int(generator.integers(2**31)), self.name_of))

    def name_of(self, seed: int) -> str:
        return f"NetHack {self.options.character} seed {seed}"

    def enter(self, seed: int) -> str:
        self._deepest = self._highest = 1
        text = super().enter(seed)
        self._memory, self._sight = Memory(), self._see()
        self._memory.see(self._sight)
        return f"{text}\nYou have: {inventory(self._game.part('inv_letters'), self._game.part('inv_strs'))}."

    def _look(self) -> None:
        super()._look()
        if not self._game.is_over:
            numbers = self._game.part("blstats")
            self._deepest = max(self._deepest, int(numbers[12]))
            self._highest = max(self._highest, int(numbers[18]))

    def _see(self) -> Sight:
        numbers = self._game.part("blstats")
        return Sight(
            here=self.here,
            level=self._level,
            turns=self._turns,
            glyphs=self._glyphs,
            names=self._game.part("screen_descriptions"),
            health=(int(numbers[10]), int(numbers[11])),
            hunger=int(numbers[21]),
            food=tuple(chr(letter) for letter, kind in self._has if letter and kind == _FOOD),
            said=tuple(self._game.said),
        )

    def watch(self, command: words.Command) -> None:
        if not self._game.is_over:
            before, self._sight = self._sight, self._see()
            self._memory.note(command, before, self._sight)

    def apply_action(self, action: str) -> Outcome[str]:
        before = self.progress()
        outcome: Outcome[str] = super().apply_action(action)
        is_dense = self.options.reward == "dense"
        return outcome._replace(reward=self.progress() - before) if is_dense else outcome

    def judge(self, text: str) -> Outcome[str]:
        is_solved = self._deepest >= self.options.goal
        return Outcome(text, float(is_solved), self.is_over(), is_solved)

    def is_over(self) -> bool:
        return self._game.is_over or self._deepest >= self.options.goal

    def progress(self) -> float:
        return min(1.0, (self._deepest - 1) / (self.options.goal - 1))

    def score(self) -> float:
        return progression(self._deepest, self._highest)

    def turn_columns(self) -> Mapping[str, float | str]:
        """Return the greatest depth and the highest experience level so far."""
        return {"outcome/depth": float(self._deepest), "outcome/experience_level": float(self._highest)}

    def expert_action(self) -> str:
        """Return the next commands of a script that goes down.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return ", ".join(Script(self._sight, self._memory).next_commands(self.options.commands))

    def _reached_state(self) -> dict[str, Any]:
        return {**super()._reached_state(), "deepest": self._deepest, "highest": self._highest}

    def close(self) -> None:
        self._game.close()
        super().close()
