"""The abstract game of LSPO: rules as they are, latent strategies instead of speeches, values from sampled games."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.trainers.lspo.latent import LatentSpace

_TRIES = 8
_SILENT = "nothing to say"
Strategy = dict[str, float]
"""Name of an abstract action -> its probability, or a sum."""


@dataclass(frozen=True)
class Talk:
    """Recorded speeches of one role.

    Args:
        space: Their latent strategies.
        said: Seat -> its different speeches, in alphabetical order.
    """

    space: LatentSpace
    said: Mapping[str, Sequence[str]]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the latent strategies."""
        return tuple(strategy_name(number) for number in range(len(self.space.representatives)))

    def of(self, seat: str) -> dict[str, tuple[str, ...]]:
        """Return latent strategy -> speeches: those of the seat itself, of the whole role if it has said none."""
        found = {}
        for number, name in enumerate(self.names):
            own = [text for text in self.said.get(seat, ()) if self.space.clusters[text] == number]
            found[name] = tuple(own or [text for text, cluster in self.space.clusters.items() if cluster == number])
        return found


def strategy_name(cluster: int) -> str:
    """Return the name of a latent strategy as an abstract action."""
    return f"strategy {cluster}"


@dataclass
class AbstractViews:
    """Names of information sets of the abstract game.

    Args:
        talks: Role -> its speeches. A view that quotes one of them quotes the representative of its cluster instead.
    """

    talks: Mapping[str, Talk]
    _known: dict[tuple[str, str], str] = field(default_factory=dict)

    def name(self, role: str, view: str) -> str:
        """Return the name of the information set of a role that sees a view."""
        key = role, view
        if key not in self._known:
            for talk in self.talks.values():
                view = talk.space.translated(view)
            self._known[key] = f"{role}: {view}"
        return self._known[key]


@dataclass
class LatentSolver:
    """Counterfactual regret minimisation over the abstract game, sampled with the rules themselves.

    In each step every seat in turn plays one game with uniform abstract actions against the present policy. At each of
    its decisions every abstract action is played to the end of the game once, with the present policy for all seats;
    the differences are sampled counterfactual regrets, up to a factor for each information set. Negative sums of
    regrets become 0, and step t has the weight t in the average policy, as in CFR+.

    Args:
        game: The rules; the solver owns this object.
        talks: Role -> its speeches.
        seed: Seed of everything that is sampled.

    >>> from turngym.envs.multiagent import make_game
    >>> solver = LatentSolver(make_game("turngym/KuhnPoker-v0"), {})
    >>> for _ in range(200):
    ...     solver.step()
    >>> bluffs = solver.average("player_0: Q check bet")
    >>> sorted(bluffs), solver.average("player_1: J bet")["fold"] > 0.95
    (['call', 'fold'], True)
    """

    game: Game
    talks: Mapping[str, Talk]
    seed: int = 0
    steps: int = 0
    regrets: dict[str, Strategy] = field(default_factory=dict)
    weights: dict[str, Strategy] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.views = AbstractViews(self.talks)
        self._generator = np.random.default_rng(self.seed)
        self._speeches: dict[tuple[str, int], dict[str, tuple[str, ...]]] = {}

    def average(self, name: str) -> Strategy | None:
        """Return the average policy at an information set; None where the solver has not been."""
        return _normalised(self.weights[name]) if name in self.weights else None

    def step(self) -> None:
        """Play one game for each seat."""
        self.steps += 1
        for seat in self.game.everyone:
            self._walk(seat)

    def _walk(self, explorer: int) -> None:
        game = self.game
        game.forfeited = ()
        game.begin(self._generator, {})
        while asked := game.asked():
            state = game.state() if explorer in asked else None
            actions = {seat: self._action(seat, notes=True) for seat in asked if seat != explorer}
            if state is not None:
                options = self._options(explorer)
                if len(options) > 1:
                    self._regret(explorer, state, asked, actions, options)
                    game.load(state)
                actions[explorer] = self._pick(explorer, self._any(list(options.values())))
            self._commit(asked, actions)

    def _regret(
        self,
        seat: int,
        state: object,
        asked: Sequence[int],
        others: Mapping[int, str],
        options: Mapping[str, Sequence[str]],
    ) -> None:
        """Add the sampled regrets of a decision."""
        name = self._name(seat)
        values = {}
        for option, texts in options.items():
            self.game.load(state)
            values[option] = self._value(seat, asked, {**others, seat: self._pick(seat, texts)})
        policy = self._policy(name, list(options))
        mean = float_sum(policy[option] * value for option, value in values.items())
        sums = self.regrets.setdefault(name, {})
        for option, value in values.items():
            sums[option] = max(sums.get(option, 0.0) + value - mean, 0.0)

    def _value(self, seat: int, asked: Sequence[int], actions: Mapping[int, str]) -> float:
        """Return what a seat earns from here on if all follow the present policy after these actions."""
        rewards = [self._commit(asked, actions)[seat]]
        while asked := self.game.asked():
            rewards.append(self._commit(asked, {each: self._action(each) for each in asked})[seat])
        return float_sum(rewards)

    def _commit(self, asked: Sequence[int], actions: Mapping[int, str]) -> Sequence[float]:
        earned = self.game.commit({seat: actions[seat] for seat in asked})
        self.game.news.clear()
        return earned

    # Decisions.

    def _role(self, seat: int) -> str:
        return self.game.role(seat) or self.game.seats[seat]

    def _name(self, seat: int) -> str:
        return self.views.name(self._role(seat), self.game.abstract_view(seat))

    def _options(self, seat: int) -> Mapping[str, Sequence[str]]:
        """Return abstract action -> actions that it stands for."""
        if not self.game.is_speech(seat):
            return self.game.abstract_actions(seat)
        key = self._role(seat), seat
        if key not in self._speeches:
            talk = self.talks.get(key[0])
            legal = tuple(self.game.legal_actions(seat)[:1]) or ("",)
            self._speeches[key] = {_SILENT: legal} if talk is None else talk.of(self.game.seats[seat])
        return self._speeches[key]

    def _action(self, seat: int, notes: bool = False) -> str:
        """Return an action of the present policy, and add the policy to the average if it is to be noted."""
        options = self._options(seat)
        name = self._name(seat)
        policy = self._policy(name, list(options))
        if notes and len(options) > 1:
            sums = self.weights.setdefault(name, {})
            for option, chance in policy.items():
                sums[option] = sums.get(option, 0.0) + self.steps * chance
        return self._pick(seat, options[self._drawn(policy)])

    def _drawn(self, policy: Strategy) -> str:
        left = float(self._generator.random())
        for option, chance in policy.items():
            left -= chance
            if left < 0:
                return option
        return max(policy, key=policy.__getitem__)

    def _policy(self, name: str, options: Sequence[str]) -> Strategy:
        sums = self.regrets.get(name, {})
        return _normalised({option: sums.get(option, 0.0) for option in options})

    def _any(self, items: Sequence[Sequence[str]]) -> Sequence[str]:
        return items[int(self._generator.integers(len(items)))]

    def _pick(self, seat: int, texts: Sequence[str]) -> str:
        """Return one of some actions as canonical text; of speeches one that the rules accept here."""
        text = texts[int(self._generator.integers(len(texts)))]
        if not self.game.is_speech(seat):
            return text
        for _ in range(_TRIES):
            try:
                return self.game.read(seat, text)
            except InvalidAction:
                text = texts[int(self._generator.integers(len(texts)))]
        return self.game.default(seat)


def _normalised(sums: Mapping[str, float]) -> Strategy:
    total = float_sum(sums.values())
    if total > 0:
        return {name: value / total for name, value in sums.items()}
    return dict.fromkeys(sums, 1 / len(sums))
