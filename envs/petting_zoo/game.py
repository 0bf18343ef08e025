"""Any environment of PettingZoo (Terry et al. 2021) with numbered actions as a :class:`Game` between seats."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from turngym.arithmetic import as_float, is_finite
from turngym.envs.adapters.borrowed import made_for
from turngym.envs.adapters.global_random import GlobalRandom
from turngym.envs.adapters.gymnasium_text import value_text
from turngym.envs.core import UNBOUNDED
from turngym.envs.multiagent.game import Game
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice, simplified
from turngym.errors import ConfigError
from turngym.options import Options as BaseOptions
from turngym.types import JSONValue

_MASK = "action_mask"
_MOST_ACTIONS, _MOST_VALUES, _MOST_MOVES = 10_000, 10_000, 100_000


def _text(observation: Any) -> str:
    """Return an observation with the rows of an array on lines; cells of several values are in brackets.

    >>> print(_text(np.zeros((2, 2, 2), np.int8)))
    [0 0] [0 0]
    [0 0] [0 0]
    """
    if isinstance(observation, Mapping):
        return "\n".join(f"{key}: {_text(value)}" for key, value in observation.items())
    if not isinstance(observation, np.ndarray) or observation.ndim < 2:
        return value_text(observation)
    if observation.ndim == 2:
        return "\n".join(value_text(row) for row in observation)
    return "\n".join(" ".join(f"[{value_text(cell)}]" for cell in row) for row in observation)


def _imported(module: str) -> Any:
    """Return a module, or None if there is none of that name; errors of an import in it are raised."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        return None


class PettingZoo(Game):
    """A game of PettingZoo, in turns (AEC) or parallel, in which all that act together decide without seeing it.

    A seat that is asked reads its observation as numbers and its legal actions, those that ``action_mask`` of the
    observation or of the info allows. The rewards are the environment's, and the score is their sum. The seats with
    the highest sum have won, unless all are equal; alone, a positive sum wins. A forfeit ends the game with one point
    less than the lowest sum. The anchor is the observation. Snapshots hold the seed and the actions, which are
    replayed.

    Environments without ``possible_agents``, with other spaces of actions than ``Discrete``, or with images as
    observations are refused.
    """

    class Options(BaseOptions):
        module: str = "pettingzoo.classic.tictactoe_v3"
        """Module with a function ``env`` or ``parallel_env``; it is imported."""
        setting: Mapping[str, Any] | None = None
        """Arguments of that function, JSON values only."""
        actions: tuple[str, ...] = ()
        """Names of the actions in order; numbers unless given."""

    options: Options

    file_options = worded(
        module=r"pettingzoo\.(classic|butterfly|sisl)\.[a-z0-9_]{1,60}", actions="[A-Za-z0-9 _-]{1,40}"
    )
    name = "petting_zoo"
    score_range = UNBOUNDED

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        self._random = GlobalRandom()
        with self._random.lent():
            self._env = self._made()
        super().__init__(len(self._require_agents()))
        self._agents: tuple[str, ...] = tuple(self._env.possible_agents)
        self._labels = [self._labels_of(agent) for agent in self._agents]
        self.setup()

    _constructor = __init__

    # Create the environment.

    def _made(self) -> Any:
        module, settings = self.options.module, dict(self.options.setting or {})
        with made_for("turngym/PettingZoo-v0", module), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.filterwarnings("ignore", "The base environment", UserWarning)  # it is never rendered
            found = _imported(module)
            if make := getattr(found, "env", None):
                return make(**settings)
            if make := getattr(found, "parallel_env", None):
                return importlib.import_module("pettingzoo.utils").parallel_to_aec(make(**settings))
        raise ConfigError(
            f"{module} cannot be played: expected a module with a function env or parallel_env, such as "
            "pettingzoo.classic.rps_v2."
        )

    def _require_agents(self) -> Sequence[str]:
        agents = getattr(self._env, "possible_agents", None)
        if not agents:
            raise self._unusable("it has no list possible_agents")
        return list(agents)

    def _unusable(self, reason: str) -> ConfigError:
        return ConfigError(f"{self.options.module} cannot be played here: {reason}.")

    def _labels_of(self, agent: str) -> tuple[str, ...]:
        space, seen = self._env.action_space(agent), self._env.observation_space(agent)
        if not isinstance(space, spaces.Discrete) or space.n > _MOST_ACTIONS:
            raise self._unusable(f"the actions of {agent} are {space}, expected at most {_MOST_ACTIONS} numbered ones")
        if spaces.flatdim(seen) > _MOST_VALUES:
            raise self._unusable(f"an observation of {agent} has more than {_MOST_VALUES:,} numbers, as images do")
        count = int(space.n)
        labels = self.options.actions or tuple(str(int(space.start) + number) for number in range(count))
        if len(labels) != count or len({simplified(label) for label in labels}) != count:
            raise ConfigError(f"actions of {self.options.module} must be {count} different names, got {list(labels)}.")
        return labels

    # The course of a game.

    def setup(self) -> None:
        """Start a game, so that a wrong setting is an error now."""
        self._start(0)
        for seat in self.asked():
            self.prompt(seat)

    def instructions(self, seat: int) -> str:
        """Return the name of the game and the answer format."""
        return (
            f"You play {self.options.module.rpartition('.')[2]} by the rules of PettingZoo. You are shown your "
            "observation and your legal actions.\nAnswer with one of these actions in brackets: [ACTION]."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Start a game; there are no options."""
        self.require_known(options)
        self.news.clear()
        self._start(int(generator.integers(2**31)))
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}.")

    def _start(self, seed: int) -> None:
        self._seed, self._moves, self._is_ended = seed, list[int](), False
        self._totals = [0.0] * self.num_seats
        self._cut: set[str] = set()
        self._random.seed(seed)
        with self._random.lent():
            self._env.reset(seed=seed)
        self._pass_over_dead()

    def _pass_over_dead(self) -> None:
        """Take agents that are out of the game off the list until one has to decide."""
        env = self._env
        with self._random.lent():
            while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
                if not env.terminations[env.agent_selection]:
                    self._cut.add(env.agent_selection)
                env.step(None)
        self._is_ended = not env.agents

    def asked(self) -> tuple[int, ...]:
        """Return the seat that decides."""
        return () if self._is_ended else (self._agents.index(self._env.agent_selection),)

    def _observed(self, seat: int) -> tuple[Any, Any]:
        """Return the observation of a seat, and its mask; None where there is none."""
        agent = self._agents[seat]
        with self._random.lent():
            seen = self._env.observe(agent)
        if isinstance(seen, Mapping) and _MASK in seen:
            rest = {key: value for key, value in seen.items() if key != _MASK}
            return rest["observation"] if rest.keys() == {"observation"} else rest, seen[_MASK]
        return seen, self._env.infos.get(agent, {}).get(_MASK)

    def _places(self, seat: int) -> list[int]:
        mask, count = self._observed(seat)[1], len(self._labels[seat])
        return [number for number in range(count) if mask is None or mask[number]]

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the names of the actions that the mask allows."""
        return tuple([self._labels[seat][number] for number in self._places(seat)])

    def prompt(self, seat: int) -> str:
        """Return the observation and the legal actions."""
        return f"{self._known(seat)}\nLegal actions: {', '.join(self.legal_actions(seat))}\nWhich action?"

    def _known(self, seat: int) -> str:
        return _text(self._observed(seat)[0]) if self._agents[seat] in self._env.agents else "out of the game"

    def read(self, seat: int, text: str) -> str:
        """Return the legal action that an answer names."""
        legal = self.legal_actions(seat)
        return text if text in legal else read_choice(text, {simplified(label): label for label in legal})

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Pass on the action."""
        ((seat, text),) = actions.items()
        rewards = self._move(seat, self._labels[seat].index(text))
        if self._is_ended:
            totals = ", ".join(f"{name} {total:g}" for name, total in zip(self.seats, self._totals, strict=True))
            self.tell(self.everyone, f"The game is over. Sums of rewards: {totals}.")
        return rewards

    def _move(self, seat: int, number: int) -> list[float]:
        env = self._env
        with self._random.lent():
            env.step(int(env.action_space(self._agents[seat]).start) + number)
            rewards = [as_float(env.rewards.get(agent, 0.0)) for agent in self._agents]
        self._moves.append(number)
        self._totals = [total + more for total, more in zip(self._totals, rewards, strict=True)]
        self._pass_over_dead()
        return rewards

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """End the game, with one point less than the lowest sum for those seats."""
        before, lowest = list(self._totals), min(self._totals)
        for seat in seats:
            self._totals[seat] = lowest - 1.0
            self.tell(self.everyone, f"{self.seats[seat]} gave no legal action and forfeits the game.")
        self._is_ended = True
        return [after - earlier for after, earlier in zip(self._totals, before, strict=True)]

    # What is known about it.

    def anchor(self, seat: int) -> str:
        """Return the observation of the seat."""
        if self._is_ended:
            return f"over; {self._totals[seat]:g}"
        return f"{self.seats[seat]}\n{self._known(seat)}"

    def winners(self) -> tuple[int, ...]:
        """Return the seats with the highest sum of rewards."""
        best, lowest = max(self._totals), min(self._totals)
        if not self._is_ended or (best == lowest and (self.num_seats > 1 or best <= 0)):
            return ()
        return tuple([seat for seat in self.everyone if self._totals[seat] == best])

    def is_truncated(self, seat: int) -> bool:
        """Return whether PettingZoo says that the seat was truncated and not terminated."""
        return self._agents[seat] in self._cut

    def close(self) -> None:
        """Close the environment."""
        with self._random.lent():
            self._env.close()

    def progress(self, seat: int) -> float:
        """Return 1 at the end and 0 before, since PettingZoo's games do not foresee it."""
        return float(self._is_ended)

    def score(self, seat: int) -> float:
        """Return the sum of rewards of the seat."""
        return self._totals[seat]

    def state(self) -> JSONValue:
        """Return the seed and the actions, and how a forfeit ended it."""
        return {
            "seed": self._seed,
            "moves": list(self._moves),
            "totals": list(self._totals),
            "is_ended": self._is_ended,
        }

    def load(self, state: JSONValue) -> None:
        """Replay what ``state`` returned."""
        seed, moves = state["seed"], state["moves"]
        if type(seed) is not int or not 0 <= seed < 2**31 or len(moves) > _MOST_MOVES:
            raise ValueError("the state is damaged")
        self._start(seed)
        for number in moves:
            (seat,) = self.asked()
            if type(number) is not int or number not in self._places(seat):
                raise ValueError(f"the move {number!r} is not possible")
            self._move(seat, number)
        totals = [float(one) for one in state["totals"]]
        was_cut = bool(state["is_ended"]) and not self._is_ended  # by a forfeit, after which totals are others
        if (
            len(totals) != self.num_seats
            or not all(map(is_finite, totals))
            or (self._is_ended and not state["is_ended"])
            or not (was_cut or totals == self._totals)
        ):
            raise ValueError("the state is damaged")
        self._totals, self._is_ended = totals, bool(state["is_ended"])
