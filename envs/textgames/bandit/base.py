"""Base of all bandits: arms with names, a horizon, rewards that are fixed at the reset, regret as the score.

Regret is expected regret: the sum over the pulls of the best arm's mean less the pulled arm's mean. The rewards of
every turn and arm are derived from a key sampled at the reset, so all members of a group get the same rewards.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.textgames.bandit.scenarios import Scenario
from turngym.envs.validation import refuse_task, require_running
from turngym.options import OptionError, between
from turngym.seeding import stream
from turngym.types import JSONValue

_KEYS = 2**62


class Bandit(TextEnv[str]):
    """The part of a bandit that does not depend on where its rewards come from.

    A subclass calls ``_set_story`` in its ``setup``, draws an instance in ``_deal`` and says in ``_gaps`` what each
    arm costs in a turn.
    """

    class Options(TextEnv.Options):
        arms: int = 5
        """Number of arms."""
        horizon: int = 50
        """Pulls of an episode, at least ``arms``; the episode terminates after the last one."""
        view: Literal["history", "summary", "guide"] = "history"
        """``"history"`` shows each reward, ``"summary"`` also a table of counts and means, ``"guide"`` also the bonus
        and the value that UCB gives each arm."""
        on_invalid: Literal["replace", "ask_again"] = "ask_again"
        """Handling of an action that names no arm: ``"ask_again"`` pulls nothing, ``"replace"`` pulls a random arm,
        sampled at the reset. Either way the action is invalid."""
        expert: str = "ucb"
        """Reference player of ``expert_action``."""
        success_share: Annotated[float, between(0.0, 1.0)] = 0.75
        """Largest share of the regret of random play that is a success."""
        max_turns: MaxTurns | None = None  # type: ignore[assignment]  # as turn_limit says
        """Turns after which the episode is truncated; None for twice the horizon, or the horizon if invalid actions
        are replaced."""

        most_arms: ClassVar[int]
        """Largest number of arms."""

        @property
        def turn_limit(self) -> int:
            asks_again = self.on_invalid == "ask_again"
            return self.max_turns or (self.horizon * 2 if asks_again else self.horizon)

        def check(self) -> None:
            self.require("arms", between(2, self.most_arms))
            self.require("horizon", between(self.arms, 50_000))
            if self.turn_limit < self.horizon:
                raise OptionError(
                    "max_turns",
                    f"is {self.max_turns}, but the episode ends after {self.horizon} pulls: pass "
                    f"horizon={self.max_turns} for a shorter one.",
                )

    options: Options

    __slots__ = (
        "_arm_of",
        "_asks_again",
        "_kind",
        "_random_regret",
        "_regret",
        "arms",
        "counts",
        "horizon",
        "names",
        "sums",
    )

    def setup(self) -> None:
        options = self.options
        self.arms, self.horizon, self.view, self.expert = options.arms, options.horizon, options.view, options.expert
        self.success_share = options.success_share
        self.score_range = (1.0 - options.arms, 1.0)  # no gap is larger than the sum of all of them
        self._asks_again = options.on_invalid == "ask_again"

    def _set_story(self, scenario: Scenario, names: tuple[str, ...], more: str) -> None:
        """Write the instructions and fix the names of the arms."""
        self.names = names
        self._arm_of = {name: arm for arm, name in enumerate(names)}
        self._kind = scenario.kind
        others = "you are asked again" if self._asks_again else f"a random {scenario.kind} is chosen for you"
        self.instructions = (
            f"{scenario.story} You choose {self.horizon} times; collect as much reward as you can.\n{more}\n"
            f"Answer with the name of one {scenario.kind} only. If your answer is none of these names, {others}."
        )

    # What a subclass says.

    @abstractmethod
    def _deal(self) -> None:
        """Draw an instance: the keys, and everything that the rewards depend on."""

    @abstractmethod
    def _gaps(self, turn: int) -> tuple[float, ...]:
        """Return what each arm's mean falls short of the best one's."""

    @abstractmethod
    def _reward(self, turn: int, arm: int) -> float:
        """Return the reward that was fixed for a turn and an arm."""

    @abstractmethod
    def _player_choice(self, player: str) -> int:
        """Return the arm that a reference player would pull now."""

    @abstractmethod
    def _table(self) -> str:
        """Return what has been seen of each arm, as text, with the guide's numbers if the view has them."""

    @abstractmethod
    def _hidden(self) -> JSONValue:
        """Return what an instance is made of, keys aside."""

    @abstractmethod
    def _adopt_hidden(self, hidden: JSONValue) -> None:
        """Take over what ``_hidden`` returned; the keys are set."""

    def _introduction(self) -> str:
        """Return what an observation says of the choice that comes next."""
        return f"Choose a {self._kind}."

    # The episode.

    @property
    def regret(self) -> float:
        """Expected regret of the pulls so far; lower is better."""
        return self._regret

    @property
    def pulls(self) -> tuple[int, ...]:
        """The arms that have been pulled, as positions in ``names``."""
        return tuple(self._pulled)

    @property
    def rewards(self) -> tuple[float, ...]:
        """The rewards of the pulls."""
        return tuple(self._received)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._deal()
        self._start()
        return self._board("")

    def _draw_keys(self, generator: np.random.Generator) -> tuple[int, int]:
        """Return the keys of the rewards and of what has no part in them; they share nothing."""
        first, second = generator.integers(_KEYS, size=2).tolist()
        return first, second

    def _start(self) -> None:
        """Start without any pull."""
        self._pulled: list[int] = []
        self._received: list[float] = []
        self.counts, self.sums = [0] * self.arms, [0.0] * self.arms
        self._regret = self._random_regret = 0.0
        self._substitutes: list[int] | None = None

    def _board(self, news: str) -> str:
        """Return an observation: what the last pull gave, and what the view shows next to it."""
        parts = [news] if news else []
        if self.view != "history":
            parts.append(self._table())
        if len(self._pulled) < self.horizon:
            parts.append(self._introduction())
        return "\n".join(parts)

    def apply_action(self, action: str) -> Outcome[str]:
        arm = self._arm_of.get(action.strip().lower())
        if arm is None:
            return self._answer_invalid()
        return self._pull(arm, "", True)

    def _answer_invalid(self) -> Outcome[str]:
        note = f"Unknown action: answer with one of {', '.join(self.names)}."
        if self._asks_again:
            return Outcome(self._board(note), action_is_valid=False)
        if self._substitutes is None:
            generator = stream("bandit substitutes", self._player_key)
            self._substitutes = generator.integers(self.arms, size=self.horizon).tolist()
        arm = self._substitutes[len(self._pulled)]
        return self._pull(arm, f"{note} {self.names[arm]} was chosen at random.\n", False)

    def _pull(self, arm: int, note: str, is_valid: bool) -> Outcome[str]:
        turn = len(self._pulled)
        reward = self._reward(turn, arm)
        self._record(turn, arm, reward)
        is_over = turn + 1 == self.horizon
        is_success = is_over and self._regret <= self.success_share * self._random_regret
        news = f"{note}{self.names[arm]}: reward {_number(reward)}"
        return Outcome(self._board(news), reward, is_over, is_success, is_valid)

    def _record(self, turn: int, arm: int, reward: float) -> None:
        self._pulled.append(arm)
        self._received.append(reward)
        self.counts[arm] += 1
        self.sums[arm] += reward
        gaps = self._gaps(turn)
        self._regret += gaps[arm]
        self._random_regret += float_sum(gaps) / self.arms

    def _replay(self, pulled: list[int], received: list[float]) -> None:
        """Go through pulls again, after what they are measured by has changed."""
        self._start()
        for turn, (arm, reward) in enumerate(zip(pulled, received, strict=True)):
            self._record(turn, arm, reward)

    def legal_actions(self) -> tuple[str, ...]:
        return self.names

    def progress(self) -> float:
        """Return the share of the pulls that are made: whether they were good ones is not known before the end."""
        return len(self._pulled) / self.horizon

    def score(self) -> float:
        return 1 - self._regret / self._random_regret if self._random_regret else 0.0

    def save_state(self) -> JSONValue:
        keys = [self._reward_key, self._player_key]
        return {"keys": keys, "hidden": self._hidden(), "pulled": self._pulled, "received": self._received}

    def load_state(self, state: JSONValue) -> None:
        pulled, received = list(state["pulled"]), [float(reward) for reward in state["received"]]
        if len(pulled) > self.horizon or not all(arm in range(self.arms) for arm in pulled):
            raise ValueError(f"pulled arms {pulled!r}")
        self._reward_key, self._player_key = state["keys"]
        self._adopt_hidden(state["hidden"])
        self._replay(pulled, received)

    def _player_stream(self) -> np.random.Generator:
        """Return a generator for what a reference player draws in this turn; the rewards know nothing of it."""
        return stream("bandit player", self._player_key, len(self._pulled))

    def expert_action(self) -> str:
        """Return the choice of the reference player, which sees what the agent sees.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return self.names[self._player_choice(self.expert)]


def _number(value: float) -> str:
    """Return a reward as text: whole numbers without a point.

    >>> _number(1.0), _number(-0.25)
    ('1', '-0.25')
    """
    return f"{value:g}"
