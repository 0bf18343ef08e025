"""TextWorld (Cote et al. 2018, arXiv 1806.11532): generated text games, played by the package's own engine.

The package generates a game, compiles it for the Z-machine and keeps its facts; this adapter keeps its texts, commands,
points and walkthroughs. A game is built when it is first played and kept in the user's cache.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from turngym.envs.core import UNBOUNDED, MaxTurns, Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.envs.textworlds.replay import require_same
from turngym.envs.textworlds.story import Damaged, read_story
from turngym.envs.textworlds.textworld.build import ABOUT, STORY, built, require_textworld
from turngym.envs.textworlds.textworld.games import (
    FIRST_SEED,
    FOOD_SPLIT,
    GAMES,
    MOST_GAMES,
    Value,
    as_text,
    describe,
    read_params,
)
from turngym.envs.textworlds.textworld.text import Sight, match_command, tidy
from turngym.envs.textworlds.textworld_express.env import UNKNOWN_ACTION
from turngym.envs.textworlds.textworld_express.games import gold_position
from turngym.envs.validation import require_running
from turngym.errors import ConfigError, ExpertLost, UnknownName, nearest
from turngym.options import OptionError, between, one_of
from turngym.types import JSONValue

_RECIPE = "examine cookbook"
_SEED = 1
_READING = threading.Lock()  # the package's parser is one for all threads


class TextWorld(TextEnv[str]):
    """A game that TextWorld generated.

    The score is the share of the game's points; winning and losing are the package's. An action that is not in its list
    of commands changes nothing; case, spacing, articles and the usual short forms (``n``, ``x key``) do not matter.
    The anchor holds what was seen of the package's facts.
    """

    class Options(TextEnv.Options):
        game: Annotated[str, one_of(*GAMES)] = "coin_collector"
        """``coin_collector``, ``treasure_hunter``, ``simple``, ``cooking`` or ``custom``."""
        params: str | Mapping[str, Value] | None = None
        """Parameters of its generator, as a mapping or as ``"level=10"``; :data:`GAMES` lists names and values."""
        games: Annotated[int, between(1, MOST_GAMES)] = 100
        """How many games there are in a split. Each is built when it is first played, in a few seconds of processor
        time."""
        story: str = ""
        """A custom game instead: a ``.z8`` file with TextWorld's ``.json`` file next to it."""
        reward: Literal["score", "intermediate"] = "score"
        """``"score"``: the change of the score; ``"intermediate"``: TextWorld's intermediate reward: 1 for each action
        that leads closer to the end of the quest, -1 for one that leads away from it; in cooking games only the end
        counts."""
        max_turns: MaxTurns = 50

        def check(self) -> None:
            if self.story and self.params:
                raise OptionError("params", "must be empty with a story: a story of your own is played as it is.")

    options: Options

    file_options = worded("game", "reward", params=r"[a-z0-9_=, ]{0,200}")

    def setup(self) -> None:
        options = self.options
        self.game, self.games = options.game, options.games
        self._params = read_params(options.game, options.params)
        self.params = as_text(self._params)
        self.settings = {**self.settings, "params": "" if options.story else self.params}
        self.instructions = describe("custom" if options.story else options.game)
        require_textworld()
        self._story = Path(options.story).expanduser() if options.story else None
        if self._story is not None:
            self.score_range = UNBOUNDED
            _require_whole_story(self.env_id, self._story)
            self.finite_instances = 1
        self._reward = options.reward
        self._engine: Any = None
        self._loaded = ""

    # Tasks.

    def tasks(self) -> tuple[str, ...]:
        """Return the names of the split's games: ``"train/0"`` and so on; of a story, its file's name."""
        if self._story is not None:
            return (self._story.name,)
        return tuple(f"{self.split}/{number}" for number in range(self.games))

    def _name(self, task: str | int | None) -> str:
        names = self.tasks()
        if task is None:
            return names[int(self.np_random.integers(len(names)))]
        if isinstance(task, str):
            if task not in names:
                raise UnknownName(f"{self.env_id} has no task named {task!r}. {nearest(task, names)}")
            return task
        self.require("the task", task, 0, len(names) - 1)
        return names[int(task)]

    def _files(self, name: str) -> tuple[Path, tuple[str, ...]]:
        """Return the story of a task and its walkthrough, empty where only the engine knows one."""
        if self._story is not None:
            return self._story, ()
        request = {
            "game": self.game,
            "params": self._params,
            "seed": FIRST_SEED[self.split] + int(name.rpartition("/")[2]),
            "foods": FOOD_SPLIT[self.split] if self.game == "cooking" else "",
        }
        folder = built(request)
        return folder / STORY, tuple(json.loads((folder / ABOUT).read_bytes())["walkthrough"])

    # Talking to the game.

    def _enter(self, name: str) -> None:
        """Set up a task at its beginning."""
        if self._engine is None or self._loaded != name:
            self.close()
            story, self._walkthrough = self._files(name)
            if len(self._walkthrough) > self.max_turns:
                raise ConfigError(
                    f"the game {name} of {self.env_id} takes {len(self._walkthrough)} turns: raise max_turns."
                )
            with _READING:
                self._engine, self._loaded = self._start(story), name
        self.instance = f"{self._story or f'{self.game}({self.params})'} {name}"
        self._actions: list[str] = []
        self._notes: dict[str, str] = {}
        self._policy: tuple[str, ...] | None = None
        self._told = self._engine.reset()
        self._text = tidy(self._told.feedback, self._told.objective)
        names = {name: info.name or name for name, info in self._told["game"].infos.items()}
        self._sight = Sight(names)
        self._look()

    def _start(self, story: Path) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # that jericho does not know these stories, and what its parser warns of
                import textworld

                infos = textworld.EnvInfos(admissible_commands=True, intermediate_reward=self._reward == "intermediate")
                engine = textworld.start(str(story), infos)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_game(self.env_id, story.with_suffix(".json"), error) from error
        engine.seed(_SEED)
        return engine

    def _look(self) -> None:
        self._sight.look((fact.name, *(each.name for each in fact.arguments)) for fact in self._told["_facts"])
        self._commands = tuple(self._told.admissible_commands)
        self._anchor_text = "\n".join(
            [self._told.objective, self._sight.text(), *(self._notes[each] for each in sorted(self._notes))]
        )

    def _follow(self, action: str) -> None:
        """Take a command and update the records."""
        self._told, _, _ = self._engine.step(action)
        self._actions.append(action)
        self._text, self._policy = tidy(self._told.feedback), None
        if action == _RECIPE:
            self._notes[action] = self._text
        self._look()

    # The contract.

    def begin(self, task: str | int | None) -> str:
        self._enter(self._name(task))
        return self._text

    def apply_action(self, action: str) -> Outcome[str]:
        known = match_command(action, self._commands)
        if known is None:
            return Outcome(UNKNOWN_ACTION, action_is_valid=False)
        before = self._share()
        self._follow(known)
        told = self._told
        reward = float(told.intermediate_reward) if self._reward == "intermediate" else self._share() - before
        return Outcome(self._text, reward, bool(told.won or told.lost), bool(told.won))

    def _share(self) -> float:
        return self._told.score / self._told.max_score if self._told.max_score else float(bool(self._told.won))

    def anchor(self) -> str:
        """Return the task, what is carried, every room as it was last seen, and the recipe once it was read."""
        return self._anchor_text

    def legal_actions(self) -> tuple[str, ...]:
        return self._commands

    def progress(self) -> float:
        return min(max(self._share(), 0.0), 1.0)

    def score(self) -> float:
        return self._share()

    def expert_action(self) -> str:
        """Return the next command of the walkthrough, or of TextWorld's own policy once the walkthrough was left.

        Raises:
            ConfigError: No episode is under way; or the walkthrough was left, and TextWorld has no policy here, as in
                its cooking games.
        """
        require_running(self)
        done = [action for action in self._actions if action != "look"]
        position = gold_position(done, self._walkthrough, may_look=True) if self._walkthrough else None
        if position is not None:
            return self._walkthrough[position]
        if self._policy is None:
            self._policy = self._plan()
        if not self._policy:
            raise ExpertLost(
                f"the episode of {self.env_id} has left the walkthrough of {self.instance}, and TextWorld has no other "
                "way to the end from here."
            )
        return self._policy[0]

    def _plan(self) -> tuple[str, ...]:
        """Return the commands of TextWorld's policy from the present state, found by following the quest so far."""
        from textworld.generator.game import GameProgression
        from textworld.generator.inform7 import Inform7Game

        game = self._told["game"]
        words, course = Inform7Game(game), GameProgression(game, track_quests=True)
        for command in self._actions:
            commands = words.gen_commands_from_actions(course.valid_actions)
            if command in commands:
                course.update(course.valid_actions[commands.index(command)])
        commands = words.gen_commands_from_actions(course.winning_policy or ())
        return tuple(commands) if commands and commands[0] in self._commands else ()

    def save_state(self) -> JSONValue:
        return {"task": self._loaded, "actions": list(self._actions), **self._check()}

    def _check(self) -> dict[str, Any]:
        return {"last": self._text, "anchor": self._anchor_text, "score": self._share()}

    def load_state(self, state: JSONValue) -> None:
        self._enter(self._name(state["task"]))
        for action in state["actions"]:
            self._follow(action)
        require_same(self, self._check(), state)

    def close(self) -> None:
        """End the game; a later reset starts it again."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None
        super().close()


def _require_whole_story(env_id: str, story: Path) -> None:
    """Raise unless a story and its facts can be read, and are whole as far as one sees."""
    try:
        read_story(story)
        json.loads(story.with_suffix(".json").read_bytes())
    except Damaged as error:
        raise _no_game(env_id, story, error) from error
    except (OSError, ValueError) as error:
        raise _no_game(env_id, story if isinstance(error, OSError) else story.with_suffix(".json"), error) from error


def _no_game(env_id: str, path: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"{env_id} cannot play {path}: {error}. A story is a .z8 file that TextWorld made, with its .json file beside "
        "it (for example: tw-make custom --output game.z8)."
    )
