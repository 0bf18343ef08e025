"""Multi-armed bandits: choose among arms whose rewards you learn only by choosing them.

Bernoulli: one arm pays 1 with probability 1/2 + gap/2, the others with 1/2 - gap/2, else 0. Gaussian: the means of the
arms are drawn from a normal distribution around 0, and the rewards from one around the mean. The order of the arms is
sampled from the seed. The settings of BanditBench (Nie et al. 2024, arXiv 2410.06238) are 5 arms, gap 0.5 and 300 pulls
("easy"), and 20 arms, gap 0.2 and 1,000 pulls ("hard"); the Gaussian ones have a spread of 1 and 3.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from turngym.envs.settings import worded
from turngym.envs.textgames.bandit.base import Bandit
from turngym.envs.textgames.bandit.players import bonus, greedy, thompson_bernoulli, thompson_gaussian, ucb
from turngym.envs.textgames.bandit.scenarios import SCENARIOS
from turngym.envs.validation import require_choice
from turngym.seeding import stream
from turngym.types import JSONValue

PLAYERS = ("ucb", "thompson", "greedy")
MOST_ARMS = 20


_SAME_ARM = (
    "one arm throughout is the best one in some episodes, which random play, spread over all arms, never matches."
)


class ArmedBandit(Bandit):
    """A bandit whose arms keep their means: what the Bernoulli and the Gaussian one share."""

    file_options = worded("scenario", "view", "on_invalid", "expert")
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        (
            *("first legal", "last legal", "alphabetically first", "alphabetically last"),
            *("last winner's first action", "winners' most frequent action"),
        ),
        _SAME_ARM,
    )

    _scale = 1.0
    """Standard deviation of the rewards of an arm, as far as UCB's bonus is a multiple of it."""

    def _tell(self, scenario: str, rewards: str) -> None:
        require_choice(self.env_id, "scenario", scenario, tuple(SCENARIOS))
        story = SCENARIOS[scenario]
        names = story.names[: self.arms]
        self._set_story(story, names, f"The {story.kind}s are: {', '.join(names)}.\n{rewards}")

    @abstractmethod
    def _draw_means(self, generator: np.random.Generator) -> tuple[float, ...]:
        """Return the mean of each arm."""

    @abstractmethod
    def _draw_rewards(self, generator: np.random.Generator) -> NDArray[np.float64]:
        """Return the rewards of every turn and arm, shape [turn, arm]."""

    def _deal(self) -> None:
        means, keys = self.draw(
            lambda generator: (self._draw_means(generator), self._draw_keys(generator)), lambda drawn: _name(*drawn)
        )
        self._reward_key, self._player_key = keys
        self._set_means(means)

    def _set_means(self, means: Iterable[float]) -> None:
        self.means = tuple(means)
        best = max(self.means)
        self._gap_of = tuple([best - mean for mean in self.means])
        self._rewards = self._draw_rewards(stream("bandit rewards", self._reward_key))

    def _start(self) -> None:
        super()._start()
        self._lines = [f"{name}: not chosen yet" for name in self.names]

    def _gaps(self, turn: int) -> tuple[float, ...]:
        return self._gap_of

    def _reward(self, turn: int, arm: int) -> float:
        return float(self._rewards[turn, arm])

    def _record(self, turn: int, arm: int, reward: float) -> None:
        super()._record(turn, arm, reward)
        count = self.counts[arm]
        times = "once" if count == 1 else f"{count} times"
        self._lines[arm] = f"{self.names[arm]}: chosen {times}, mean reward {self.sums[arm] / count:.3f}"

    def anchor(self) -> str:
        return "\n".join(self._lines)

    def _table(self) -> str:
        if self.view != "guide":
            return "\n".join(self._lines)
        turns = len(self._pulled)
        lines = []
        for line, count, total in zip(self._lines, self.counts, self.sums, strict=True):
            extra = bonus(count, turns, scale=self._scale) if count else 0.0
            lines.append(f"{line}, exploration bonus {extra:.3f}, value {total / count + extra:.3f}" if count else line)
        return "\n".join(lines)

    def _hidden(self) -> JSONValue:
        return list(self.means)

    def _adopt_hidden(self, hidden: JSONValue) -> None:
        if len(hidden) != self.arms:
            raise ValueError(f"means {hidden!r}")
        self._set_means(hidden)

    def resample_hidden(self) -> bool:
        """Draw other means and other coming rewards; any are possible after any rewards."""
        if not self._running:
            return False
        self._reward_key = self._draw_keys(self.np_random)[0]
        self._set_means(self._draw_means(self.np_random))
        self.instance = _name(self.means, (self._reward_key, self._player_key))
        self._replay(self._pulled, self._received)
        return True

    def _player_choice(self, player: str) -> int:
        if player == "thompson":
            return self._thompson(self._player_stream())
        if player == "greedy":
            return greedy(self.counts, self.sums)
        return ucb(self.counts, self.sums, scale=self._scale)

    @abstractmethod
    def _thompson(self, generator: np.random.Generator) -> int:
        """Return the arm that Thompson sampling pulls."""


class BernoulliBandit(ArmedBandit):
    r"""Arms that pay 1 or 0; one of them more often than all others, which are equal.

    The episode terminates after ``horizon`` pulls. It is a success if the expected regret is at most
    ``success_share`` of what uniform random play expects. The score is 1 less regret over the regret that random play
    expects after as many pulls: 1 for the best arm throughout, 0 for random play, below 0 for worse; the properties
    ``regret``, ``pulls`` and ``rewards`` hold the details, and :mod:`turngym.envs.textgames.bandit.metrics` has further
    measures. The anchor is the count and the mean of each arm. Progress is unknown until the end.

    Args:
        arms: How many arms there are, 2 to 20.
        gap: The best arm's mean less the others', more than 0 and at most 0.9.
        horizon: Pulls of an episode, at least ``arms``.
        scenario: What the arms are: ``"buttons"``, ``"adverts"``, ``"videos"`` or ``"clothes"``.
        view: ``"history"`` shows each reward, ``"summary"`` also a table of counts and means, ``"guide"`` also the
            bonus and the value that UCB gives each arm.
        on_invalid: Handling of an action that names no arm: ``"ask_again"`` pulls nothing, ``"replace"`` pulls a random
            arm, sampled at the reset, as BanditBench does. Either way the action is invalid.
        expert: Reference player of ``expert_action``: ``"ucb"``, ``"thompson"`` or ``"greedy"``.
        success_share: Largest share of the regret of random play that is a success, 0 to 1.
        max_turns: Turns after which the episode is truncated; None for twice the horizon, or the horizon if
            invalid actions are replaced.
        split: Share of the instances to draw from.
        env_id: Registered id.
        render_mode: ``"ansi"`` or None.

    Raises:
        ConfigError: An option is out of its range.

    >>> env = BernoulliBandit()
    >>> env.reset(seed=0)[0], env.step("green")[0]
    ('Choose a button.', 'green: reward 0\nChoose a button.')
    """

    def __init__(
        self,
        arms: int = 5,
        gap: float = 0.5,
        horizon: int = 50,
        scenario: str = "buttons",
        view: str = "history",
        on_invalid: str = "ask_again",
        expert: str = "ucb",
        success_share: float = 0.75,
        *,
        max_turns: int | None = None,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            arms=arms,
            horizon=horizon,
            view=view,
            on_invalid=on_invalid,
            expert=expert,
            players=PLAYERS,
            success_share=success_share,
            most_arms=MOST_ARMS,
            max_turns=max_turns,
            split=split,
            env_id=env_id,
            render_mode=render_mode,
        )
        self.require("gap", gap, 1e-6, 0.9)
        self.gap = gap
        self._tell(scenario, "Every reward is 0 or 1. One choice pays 1 more often than the others.")

    def _draw_means(self, generator: np.random.Generator) -> tuple[float, ...]:
        best = int(generator.integers(self.arms))
        return tuple([0.5 + (self.gap / 2 if arm == best else -self.gap / 2) for arm in range(self.arms)])

    def _draw_rewards(self, generator: np.random.Generator) -> NDArray[np.float64]:
        return (generator.random((self.horizon, self.arms)) < np.array(self.means)).astype(float)

    def _thompson(self, generator: np.random.Generator) -> int:
        return thompson_bernoulli(self.counts, self.sums, generator)


class GaussianBandit(ArmedBandit):
    """Arms whose rewards vary normally around their means; rewards are rounded to two decimals.

    Everything else is as in :class:`BernoulliBandit`.

    Args:
        arms: How many arms there are, 2 to 20.
        spread: Standard deviation of the means of the arms.
        noise: Standard deviation of the rewards of an arm; None for the same as ``spread``.
        horizon: Pulls of an episode, at least ``arms``.
        scenario: What the arms are, as in :class:`BernoulliBandit`.
        view: ``"history"``, ``"summary"`` or ``"guide"``.
        on_invalid: ``"ask_again"`` or ``"replace"``.
        expert: ``"ucb"``, whose bonus is a multiple of ``noise`` here, ``"thompson"`` with the prior that the means
            are drawn from, or ``"greedy"``.
        success_share: Largest share of the regret of random play that is a success, 0 to 1.
        max_turns: Turns after which the episode is truncated.
        split: Share of the instances to draw from.
        env_id: Registered id.
        render_mode: ``"ansi"`` or None.

    Raises:
        ConfigError: An option is out of its range.

    >>> env = GaussianBandit(scenario="clothes", view="summary", arms=2)
    >>> env.reset(seed=0)[0].splitlines()[0]
    'linen summer shirt: not chosen yet'
    """

    def __init__(
        self,
        arms: int = 5,
        spread: float = 1.0,
        noise: float | None = None,
        horizon: int = 50,
        scenario: str = "buttons",
        view: str = "history",
        on_invalid: str = "ask_again",
        expert: str = "ucb",
        success_share: float = 0.75,
        *,
        max_turns: int | None = None,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(
            arms=arms,
            horizon=horizon,
            view=view,
            on_invalid=on_invalid,
            expert=expert,
            players=PLAYERS,
            success_share=success_share,
            most_arms=MOST_ARMS,
            max_turns=max_turns,
            split=split,
            env_id=env_id,
            render_mode=render_mode,
        )
        self.require("spread", spread, 0.01, 1e4)
        self.spread = spread
        self._scale = spread if noise is None else noise
        self.require("noise", self._scale, 0.01, 1e4)
        self._tell(
            scenario,
            f"Rewards are numbers, also negative ones. The mean rewards of the choices lie around 0, with a standard "
            f"deviation of {spread:g}; the rewards of one choice vary around its mean with one of {self._scale:g}.",
        )

    def _draw_means(self, generator: np.random.Generator) -> tuple[float, ...]:
        return tuple((self.spread * generator.standard_normal(self.arms)).tolist())

    def _draw_rewards(self, generator: np.random.Generator) -> NDArray[np.float64]:
        noise = self._scale * generator.standard_normal((self.horizon, self.arms))
        return np.round(np.array(self.means) + noise, 2)

    def _thompson(self, generator: np.random.Generator) -> int:
        return thompson_gaussian(self.counts, self.sums, generator, self._scale, self.spread)


def _name(means: tuple[float, ...], keys: tuple[int, int]) -> str:
    """Return the canonical text of an instance: the means, and the key that its rewards follow from."""
    return f"means {' '.join([f'{mean:.6g}' for mean in means])} rewards {keys[0]}"
