"""Multi-armed bandits: choose among arms whose rewards you learn only by choosing them.

Bernoulli: one arm pays 1 with probability 1/2 + gap/2, the others with 1/2 - gap/2, else 0. Gaussian: the means of the
arms are drawn from a normal distribution around 0, and the rewards from one around the mean. The order of the arms is
sampled from the seed. The settings of BanditBench (Nie et al. 2024, arXiv 2410.06238) are 5 arms, gap 0.5 and 300 pulls
("easy"), and 20 arms, gap 0.2 and 1,000 pulls ("hard"); the Gaussian ones have a spread of 1 and 3.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from turngym.envs.settings import worded
from turngym.envs.textgames.bandit.base import Bandit
from turngym.envs.textgames.bandit.players import bonus, greedy, thompson_bernoulli, thompson_gaussian, ucb
from turngym.envs.textgames.bandit.scenarios import SCENARIOS
from turngym.options import between, one_of
from turngym.seeding import stream
from turngym.types import JSONValue

_SAME_ARM = (
    "one arm throughout is the best one in some episodes, which random play, spread over all arms, never matches."
)


class ArmedBandit(Bandit):
    """A bandit whose arms keep their means: what the Bernoulli and the Gaussian one share."""

    class Options(Bandit.Options):
        scenario: Annotated[str, one_of(*SCENARIOS)] = "buttons"
        """Names of the arms."""
        expert: Literal["ucb", "thompson", "greedy"] = "ucb"
        """Reference player of ``expert_action``; ``"thompson"`` has the prior that the means are drawn from."""
        most_arms = 20

    options: Options

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

    def _tell(self, rewards: str) -> None:
        story = SCENARIOS[self.options.scenario]
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
    r"""Bandit with Bernoulli rewards: one arm pays more often than the others, which are equal.

    The episode terminates after ``horizon`` pulls. It is a success if the expected regret is at most
    ``success_share`` of what uniform random play expects. The score is 1 less regret over the regret that random play
    expects after as many pulls: 1 for the best arm throughout, 0 for random play, below 0 for worse; the properties
    ``regret``, ``pulls`` and ``rewards`` hold the details, and :mod:`turngym.envs.textgames.bandit.metrics` has further
    measures. The anchor is the count and the mean of each arm. Progress is unknown until the end.

    >>> env = BernoulliBandit()
    >>> env.reset(seed=0)[0], env.step("green")[0]
    ('Choose a button.', 'green: reward 0\nChoose a button.')
    """

    class Options(ArmedBandit.Options):
        gap: Annotated[float, between(1e-6, 0.9)] = 0.5
        """The best arm's mean less the others'."""

    options: Options

    def setup(self) -> None:
        super().setup()
        self.gap = self.options.gap
        self._tell("Every reward is 0 or 1. One choice pays 1 more often than the others.")

    def _draw_means(self, generator: np.random.Generator) -> tuple[float, ...]:
        best = int(generator.integers(self.arms))
        return tuple([0.5 + (self.gap / 2 if arm == best else -self.gap / 2) for arm in range(self.arms)])

    def _draw_rewards(self, generator: np.random.Generator) -> NDArray[np.float64]:
        return (generator.random((self.horizon, self.arms)) < np.array(self.means)).astype(float)

    def _thompson(self, generator: np.random.Generator) -> int:
        return thompson_bernoulli(self.counts, self.sums, generator)


class GaussianBandit(ArmedBandit):
    """Bandit with Gaussian rewards, rounded to two decimals.

    Everything else is as in :class:`BernoulliBandit`.

    >>> env = GaussianBandit(scenario="clothes", view="summary", arms=2)
    >>> env.reset(seed=0)[0].splitlines()[0]
    'linen summer shirt: not chosen yet'
    """

    class Options(ArmedBandit.Options):
        spread: Annotated[float, between(0.01, 1e4)] = 1.0
        """Standard deviation of the means of the arms."""
        noise: Annotated[float, between(0.01, 1e4)] | None = None
        """Standard deviation of the rewards of an arm; None for the same as ``spread``. UCB's bonus is a multiple."""

    options: Options

    def setup(self) -> None:
        super().setup()
        options = self.options
        self.spread = options.spread
        self._scale = options.spread if options.noise is None else options.noise
        self._tell(
            f"Rewards are numbers, also negative ones. The mean rewards of the choices lie around 0, with a standard "
            f"deviation of {self.spread:g}; the rewards of one choice vary around its mean with one of "
            f"{self._scale:g}.",
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
