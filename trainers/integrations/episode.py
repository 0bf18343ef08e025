"""Shared by the integrations: a task that fits into a row of a data set, and one episode played with completions."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium

import turngym  # noqa: F401  (registers the environments)
from turngym.agents.core import Decision, Request
from turngym.agents.episodes.turn_writer import TurnWriter
from turngym.agents.prompt_text import PromptConfig, shown_text, system_text
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.arithmetic import float_sum
from turngym.envs.vector.info import fault_info
from turngym.errors import ConfigError, EpisodeOver, TurngymError
from turngym.text import valid_text, without_control_tokens
from turngym.wrappers import wrap
from turngym.wrappers.actions.action_format import AUTO, action_format

Message = dict[str, str]


@dataclass(frozen=True)
class Task:
    """One episode described by a row of a data set: the environment and everything that determines its start.

    Args:
        env_id: A registered id, of a text game or of a seat of a game.
        seed: Seed of the reset; members of a group share their row, so they start from the identical state.
        settings: Options of the environment, as ``gymnasium.make`` takes them.
        options: Options of the reset, such as ``{"task": 3}``.
        wrappers: Specifications such as ``"history:k=4"``, the first innermost.

    Raises:
        ConfigError: The id is not a plain registered id, or the seed is not a whole number from 0.
    """

    env_id: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.env_id or ":" in self.env_id:  # "module:id" would import what a data file names
            raise ConfigError(
                f"env_id of a task must be a registered id such as turngym/Sokoban-v0, got {self.env_id!r}."
            )
        if self.seed < 0:
            raise ConfigError(f"the seed of a task must be 0 or more, got {self.seed}.")

    def row(self) -> dict[str, Any]:
        """Return the task as columns of a data set: texts and a number, for every environment.

        >>> Task("turngym/Sokoban-v0", 7, {"boxes": 1}).row()["settings"]
        '{"boxes": 1}'
        """
        return {
            "env_id": self.env_id,
            "seed": self.seed,
            "settings": json.dumps(dict(self.settings)),
            "options": json.dumps(dict(self.options)),
            "wrappers": json.dumps(list(self.wrappers)),
        }

    @classmethod
    def of_row(
        cls,
        row: Mapping[str, Any],
        env_id: str = "",
        settings: Mapping[str, Any] | None = None,
        wrappers: Sequence[str] = (),
    ) -> Task:
        """Return the task of a row; other columns are ignored, and only ``seed`` is required.

        Args:
            row: Columns as :meth:`row` gives them; the JSON texts may also be objects or missing.
            env_id: The environment of rows that name none.
            settings: Default options of the environment, which the row's own override.
            wrappers: Wrappers of rows that name none.

        Raises:
            ConfigError: The row has no seed, names no environment, or has an invalid column.
        """
        try:
            seed = int(row["seed"])
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"a row needs a whole number in its column 'seed', got {row.get('seed')!r}: without one, the members "
                "of a group would play different tasks."
            ) from error
        found = {name: _read(row.get(name), kind, name) for name, kind in _KINDS.items()}
        _refuse_imports(found["settings"])
        return cls(
            str(row.get("env_id") or env_id),
            seed,
            {**(settings or {}), **found["settings"]},
            found["options"],
            tuple(found["wrappers"] or wrappers),
        )


_KINDS: Mapping[str, type] = {"settings": dict, "options": dict, "wrappers": list}


def _refuse_imports(settings: Mapping[str, Any]) -> None:
    """Raise for ``"module:Class"``, which may name games and players in code, but not in a data file."""
    for name in ("game", "opponents"):
        given = settings.get(name)
        names = given.values() if isinstance(given, Mapping) else given if isinstance(given, list) else [given]
        if any(":" in str(each) for each in names):
            raise ConfigError(
                f"the settings of a row name a class in {name!r}, {given!r}: a data file must not choose what is "
                "imported, so register the game or the player under a name."
            )


def _read(value: Any, kind: type, name: str) -> Any:
    """Return the parsed value of a column; empty if it is missing."""
    if value is None or value == "":
        return kind()
    try:
        found = json.loads(value) if isinstance(value, str) else kind(value)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"the column {name!r} must hold JSON, got {value!r}.") from error
    if not isinstance(found, kind):
        raise ConfigError(f"the column {name!r} must hold a JSON {kind.__name__}, got {value!r}.")
    return found


def task_rows(env_id: str, seeds: Iterable[int], prompt: str = "", **task: Any) -> list[dict[str, Any]]:
    """Return rows of a data set, one for each seed, that TRL, verl and SkyRL can read.

    Args:
        env_id: The environment.
        seeds: Seeds of the resets.
        prompt: Text of the user before the environment's own; the frameworks want a column ``prompt``.
        **task: ``settings``, ``options`` and ``wrappers`` of :class:`Task`.

    >>> [row["seed"] for row in task_rows("turngym/TowerOfHanoi-v0", range(3), settings={"discs": 2})]
    [0, 1, 2]
    """
    return [
        {"prompt": [{"role": "user", "content": prompt}], **Task(env_id, int(seed), **task).row()} for seed in seeds
    ]


@dataclass
class Result:
    """State of an episode so far, as numbers that any framework can log.

    Args:
        rewards: Reward of each turn.
        terminated: The rules ended it.
        truncated: Something outside of the rules ended it: the turn limit, a fault, or a framework's own limits.
        fault: Cause of the fault, empty if there is none.
        success: Whether the task is solved.
        score: The benchmark's number.
        invalid: Turns whose action was not understood or not legal.
    """

    rewards: list[float] = field(default_factory=list)
    terminated: bool = False
    truncated: bool = False
    fault: str = ""
    success: bool = False
    score: float = 0.0
    invalid: int = 0

    @classmethod
    def of(cls, trajectory: Trajectory, info: Mapping[str, Any]) -> Result:
        """Return the result of a trajectory so far; before its end, missing values come from the last info table."""
        is_over = trajectory.terminated or trajectory.truncated
        return cls(
            rewards=[turn.reward for turn in trajectory.turns],
            terminated=trajectory.terminated,
            truncated=trajectory.truncated,
            fault=trajectory.fault,
            success=trajectory.success == 1 if is_over else info.get("success") == 1,
            score=trajectory.score if is_over else float(info.get("score", 0.0)),
            invalid=sum(not turn.action_is_valid for turn in trajectory.turns),
        )

    @property
    def total(self) -> float | None:
        """The undiscounted return; None for a faulted episode."""
        return None if self.fault else float(float_sum(self.rewards))

    def numbers(self) -> dict[str, float]:
        """Return the outcome as plain numbers."""
        return {
            "episode_return": float(float_sum(self.rewards)),
            "success": float(self.success),
            "score": self.score,
            "turns": float(len(self.rewards)),
            "invalid_actions": float(self.invalid),
            "terminated": float(self.terminated),
            "truncated": float(self.truncated),
            "faulted": float(bool(self.fault)),
        }


class Episode:
    """Plays one episode after another; the environment is reused while tasks have the same one.

    Args:
        format: Name of the action format of the completions: ``auto`` (the environment's own notation where it has one,
            else ``tag``), ``tag``, ``boxed``, ``json`` or ``plain``.
        legal_actions: List the legal actions with each observation.

    >>> episode = Episode(format="plain")
    >>> messages = episode.begin(Task("turngym/NumberLine-v0", seed=3))
    >>> episode.step("+"), episode.result.total
    ('You are at 5. The target is 5.', 1.0)
    """

    def __init__(self, format: str = AUTO, legal_actions: bool = False) -> None:
        action_format(format)  # an unknown name is reported before an episode starts
        self.format = format
        self.finds_action = False
        self.prompt = PromptConfig(legal_actions=legal_actions)
        self._writer = TurnWriter(Trajectory(EpisodeSpec(0, 0)))
        self._seen, self._info = "", dict[str, Any]()
        self.instructions = ""
        self.max_turns = 0
        self._has_begun = False
        self._env: gymnasium.Env[Any, str] | None = None
        self._made: tuple[str, str, tuple[str, ...]] | None = None

    @property
    def trajectory(self) -> Trajectory:
        """Every turn of the episode so far, and how it ended."""
        return self._writer.trajectory

    @property
    def result(self) -> Result:
        """The result of the episode so far."""
        return Result.of(self.trajectory, self._info)

    @property
    def is_over(self) -> bool:
        """True if the episode has ended, or has not started."""
        return not self._has_begun or self.trajectory.terminated or self.trajectory.truncated

    def begin(self, task: Task, before: Sequence[Message] = (), answer: str | None = None) -> list[Message]:
        """Start the episode of a task, and return its first messages: the rules, then the first observation.

        Args:
            task: Environment to play.
            before: System prompt of the row; it comes first, without its empty messages.
            answer: Sentence about the answer format; None for that of the action format.

        Raises:
            ConfigError: The task has settings that the environment refuses.
            UnknownName: There is no such environment or wrapper.
        """
        self._writer = TurnWriter(Trajectory(EpisodeSpec(0, task.seed, options=task.options), task.env_id))
        self._seen, self._info, self._has_begun = "", {}, False
        observation = ""
        try:
            env = self._environment(task)
            seen, info = env.reset(seed=task.seed, options=dict(task.options))
            self.instructions = str(env.get_wrapper_attr("instructions"))
            self.finds_action = bool(env.get_wrapper_attr("finds_action"))
            self.max_turns = int(env.get_wrapper_attr("max_turns"))
            self.trajectory.instance = str(env.get_wrapper_attr("instance_hash"))
            observation = self._take_in(seen, info)
        except (TurngymError, gymnasium.error.Error):
            raise  # the row is wrong, and later ones would be too
        except Exception as error:
            self._break(error)
        self._has_begun = True
        answer = action_format(self.format, self.finds_action).sentence if answer is None else answer
        rules = system_text(self.prompt, self.instructions, answer)
        said = [message for message in before if message["content"]]
        system = [message["content"] for message in said if message["role"] == "system"]
        rest = [message for message in said if message["role"] != "system"]
        first = {"role": "system", "content": "\n\n".join([*system, rules])}
        return [first, *rest, {"role": "user", "content": observation}]

    def step(
        self,
        completion: str,
        prompt_ids: Sequence[int] = (),
        completion_ids: Sequence[int] = (),
        logprobs: Sequence[float] = (),
    ) -> str:
        """Take one turn with a whole completion, and return what is seen next.

        Args:
            completion: The text.
            prompt_ids: Token ids of its prompt, for the trajectory, if known.
            completion_ids: Token ids exactly as sampled.
            logprobs: The sampler's log-probability of each of these.

        Raises:
            EpisodeOver: The episode has ended or none has started.
        """
        if self.is_over or self._env is None:
            raise EpisodeOver("the episode is over: no further action changes anything.")
        tokens = tuple(prompt_ids), tuple(completion_ids), tuple(logprobs)
        request, action = self._request(), action_format(self.format, self.finds_action).action_of(completion)
        try:
            seen, reward, terminated, truncated, info = self._env.step(action)
            observation = self._take_in(seen, info)
        except Exception as error:  # the one boundary: a broken environment ends its episode and no other
            self._break(error)
            return "The environment broke."
        self._writer.decided(request, Decision(action, completion, *tokens))
        self._writer.earned(float(reward), info)
        if terminated or truncated:
            self._writer.end(self._seen, info, terminated=bool(terminated), fault=info["fault"])
        return observation

    def cut(self) -> None:
        """Truncate the episode, because the framework has no room for another turn."""
        if not self.is_over:
            self._writer.end_without_room(self._request(), "the framework has no room for a further turn")

    def _request(self) -> Request:
        """Return the agent's next request."""
        seen = self._seen, self._info, self.instructions
        return Request(0, 0, self._writer.num_turns, *seen, finds_action=self.finds_action)

    def close(self) -> None:
        """Close the environment; may be called twice."""
        env, self._env, self._made, self._has_begun = self._env, None, None, False
        if env is not None:
            env.close()

    def _environment(self, task: Task) -> gymnasium.Env[Any, str]:
        key = task.env_id, json.dumps(dict(task.settings), sort_keys=True), task.wrappers
        if self._env is None or self._made != key:
            self.close()
            self._env, self._made = wrap(gymnasium.make(task.env_id, **task.settings), *task.wrappers), key
        return self._env

    def _take_in(self, seen: Any, info: Mapping[str, Any]) -> str:
        """Store an observation, and return it as it is shown."""
        self._seen, self._info = valid_text(str(seen["text"] if isinstance(seen, dict) else seen)), dict(info)
        shown = shown_text(self.prompt, self._seen, info)
        return without_control_tokens(valid_text(shown))  # the frameworks encode it

    def _break(self, error: Exception) -> None:
        """Record a fault; the next episode gets a new environment."""
        fault = f"{type(error).__name__}: {error}"
        self._writer.end(self._seen, fault_info(fault, running=False), fault=fault)
        env, self._env = self._env, None
        with contextlib.suppress(Exception):  # it is broken already
            if env is not None:
                env.close()
