"""The extensive form of a small game, enumerated through the game's own rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from turngym.envs.multiagent.equilibria.chance import EveryDraw
from turngym.envs.multiagent.game import Game
from turngym.errors import ConfigError
from turngym.types import JSONValue

MOST_NODES = 2_000_000
"""Histories of a game that are enumerated, unless more are allowed."""

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class InformationSet(NamedTuple):
    """Decision of a seat among histories that it cannot tell apart.

    Args:
        seat: Number of the seat.
        name: The seat's anchor.
        actions: Legal actions.
        start: Index of the first action in arrays over all actions of all information sets.
        depth: Number of the seat's earlier decisions.
        node: A history in the set.
    """

    seat: int
    name: str
    actions: tuple[str, ...]
    start: int
    depth: int
    node: int


@dataclass(frozen=True, slots=True, eq=False)
class GameTree:
    """Histories of a game in breadth-first order; chance is a player.

    Each array has one entry per history. A policy is an array of one probability per action of every information set;
    ``slot`` is the index of the action that led to a history.

    Args:
        name: Name of the game.
        settings: Options of the game.
        seats: Names of the seats.
        sets: Information sets, in the order of their ``start``.
        parent: Index of the history one event earlier; -1 for the first.
        slot: Index of the last action in policies; -1 after chance.
        chance: Probability of the last event if chance decided, else 1.
        mover: Seat that decided last; the number of seats stands for chance.
        payoff: [histories, seats] sums of rewards at the ends of the game, zeros elsewhere.
        levels: Start and end of each depth, from depth 1 on.
    """

    name: str
    settings: Mapping[str, Any]
    seats: tuple[str, ...]
    sets: tuple[InformationSet, ...]
    parent: Ints
    slot: Ints
    chance: Floats
    mover: Ints
    payoff: Floats
    levels: tuple[tuple[int, int], ...]
    families: tuple[tuple[Ints, Ints], ...]
    """For each level: histories that have children there, and where the children of each start."""
    own: tuple[Ints, ...]
    """For each seat: histories that it has just brought about."""
    set_of: Ints
    """Information set of every policy entry."""
    node_of: Ints
    """A history in that set."""
    entries: tuple[Ints, ...]
    """For each seat: its policy entries."""

    @property
    def size(self) -> int:
        """Number of policy entries."""
        return len(self.set_of)

    def uniform(self) -> Floats:
        """Return the policy that plays every legal action with the same probability."""
        counts: Floats = np.bincount(self.set_of).astype(np.float64)
        return 1 / counts[self.set_of]

    def normalised(self, weights: Floats) -> Floats:
        """Return the policy proportional to weights of at least 0; uniform in sets without any weight."""
        totals = np.bincount(self.set_of, weights).astype(np.float64)[self.set_of]
        found = self.uniform()
        np.divide(weights, totals, out=found, where=totals > 0)
        return found

    def edges(self, policy: Floats) -> Floats:
        """Return the probability of each history's last event."""
        return np.where(self.slot >= 0, policy[self.slot], self.chance)

    def reach(self, factors: Floats) -> Floats:
        """Return the product of the factors along the path to each history."""
        found = factors.copy()
        for start, end in self.levels:
            found[start:end] *= found[self.parent[start:end]]
        return found

    def reach_of(self, policy: Floats, seat: int) -> Floats:
        """Return the probability that a seat plays its part of the path to each history."""
        return self.reach(np.where(self.mover == seat, self.edges(policy), 1.0))

    def reach_without(self, policy: Floats, seat: int) -> Floats:
        """Return the probability that chance and the other seats play theirs."""
        return self.reach(np.where(self.mover == seat, 1.0, self.edges(policy)))

    def values(self, policy: Floats, seat: int) -> Floats:
        """Return what each history is worth to a seat if all follow a policy."""
        found, edges = self.payoff[:, seat].copy(), self.edges(policy)
        for (start, end), (parents, starts) in zip(reversed(self.levels), reversed(self.families), strict=True):
            found[parents] += np.add.reduceat(edges[start:end] * found[start:end], starts)
        return found

    def advantages(self, policy: Floats, seat: int) -> Floats:
        """Return the counterfactual value of each action of a seat, less that of its information set."""
        values, nodes = self.values(policy, seat), self.own[seat]
        gains = values[nodes] - values[self.parent[nodes]]
        weights = self.reach_without(policy, seat)[self.parent[nodes]]
        return self.summed(seat, gains * weights)

    def summed(self, seat: int, amounts: Floats) -> Floats:
        """Return for each policy entry the sum of amounts over the histories that the seat's action has led to."""
        return np.bincount(self.slot[self.own[seat]], amounts, minlength=self.size).astype(np.float64)

    def table(self, policy: Floats) -> dict[str, dict[str, dict[str, float]]]:
        """Return seat -> information set -> action -> probability."""
        found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in self.seats}
        for each in self.sets:
            chances = policy[each.start : each.start + len(each.actions)].tolist()
            found[self.seats[each.seat]][each.name] = dict(zip(each.actions, chances, strict=True))
        return found

    def policy(self, table: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Floats:
        """Return the array of a table: the inverse of :meth:`table`. Actions that are not listed have probability 0.

        Raises:
            ConfigError: The table lacks an information set or has an action that is not legal.
        """
        found = np.zeros(self.size)
        for each in self.sets:
            chances = table.get(self.seats[each.seat], {}).get(each.name)
            if chances is None or not set(chances) <= set(each.actions):
                raise ConfigError(
                    f"a policy of {self.name} needs {self.seats[each.seat]} -> {each.name!r} -> probabilities of "
                    f"{', '.join(each.actions)}, got {chances!r:.200}."
                )
            found[each.start : each.start + len(each.actions)] = [chances.get(name, 0.0) for name in each.actions]
        return found


Choose: TypeAlias = Callable[[int, tuple[str, ...]], tuple[str, ...]]
"""From seat and legal actions (none where any text will do) to the actions to consider."""


def game_tree(game: Game, most_nodes: int = MOST_NODES, choose: Choose | None = None) -> GameTree:
    """Return the extensive form of a game.

    Information sets are named by the game's anchors, which must remember what the seat has known and done (perfect
    recall). Seats that decide simultaneously decide one after the other, without seeing each other's action.

    Args:
        game: The rules. All randomness must be draws that :class:`.chance.EveryDraw` supports.
        most_nodes: Largest number of histories.
        choose: Restricts the actions, to a few sentences for example; by default all legal ones are considered.

    Raises:
        ConfigError: The game has more histories, other draws, actions in free text, or anchors without perfect recall.

    >>> from turngym.envs.multiagent import make_game
    >>> tree = game_tree(make_game("turngym/KuhnPoker-v0"))
    >>> len(tree.parent), len(tree.sets), tree.sets[0].name, tree.sets[0].actions
    (55, 12, 'J', ('check', 'bet'))
    """
    return _Builder(game, most_nodes, choose or (lambda seat, legal: legal)).tree()


class _Node(NamedTuple):
    """State of a game after an event.

    Args:
        state: State of the game before the decision.
        taken: Actions of the seats that decide simultaneously with the next one.
        earned: Sum of the rewards of each seat.
        last: Policy entry of each seat's last action, -1 if there is none.
    """

    state: JSONValue
    taken: tuple[str, ...]
    earned: tuple[float, ...]
    last: tuple[int, ...]


_Outcomes: TypeAlias = "list[tuple[float, _Node]]"


@dataclass
class _Builder:
    game: Game
    most_nodes: int
    choose: Choose
    draws: EveryDraw = field(default_factory=EveryDraw)
    events: list[tuple[int, int, float, int]] = field(default_factory=list)
    """Parent, slot, chance and mover of each history."""
    ends: dict[int, tuple[float, ...]] = field(default_factory=dict)
    sets: list[InformationSet] = field(default_factory=list)
    index: dict[tuple[int, str], int] = field(default_factory=dict)
    before: list[int] = field(default_factory=list)
    """Policy entry of the seat's last action before each information set."""
    set_of: list[int] = field(default_factory=list)

    def tree(self) -> GameTree:
        everyone = self.game.everyone
        start = _Node(None, (), (0.0,) * len(everyone), (-1,) * len(everyone))
        frontier = [self._added(-1, -1, 1.0, len(everyone), self._outcomes(self._begin, start))]
        levels = []
        while True:
            first = len(self.events)
            frontier = [child for index, outcomes in frontier for child in self._children(index, outcomes)]
            if not frontier:
                break
            levels.append((first, len(self.events)))
        parent, slot, chance, mover = map(np.array, zip(*self.events, strict=True))
        payoff = np.zeros((len(self.events), len(everyone)))
        payoff[list(self.ends)] = list(self.ends.values())
        families = []
        for low, high in levels:
            parents, starts = np.unique(parent[low:high], return_index=True)
            families.append((parents, starts))
        own = tuple(np.flatnonzero(mover == seat) for seat in everyone)
        set_of = np.array(self.set_of, int)
        node_of, seat_of = (
            np.array([getattr(each, name) for each in self.sets], int)[set_of] for name in ("node", "seat")
        )
        entries = tuple(np.flatnonzero(seat_of == seat) for seat in everyone)
        return GameTree(
            self.game.name, self.game.settings, self.game.seats, tuple(self.sets), parent, slot, chance, mover, payoff,
            tuple(levels), tuple(families), own, set_of, node_of, entries,
        )  # fmt: skip

    def _begin(self) -> list[float]:
        self.game.begin(cast("np.random.Generator", self.draws), {})
        return [0.0] * self.game.num_seats

    def _outcomes(self, event: Callable[[], Any], node: _Node) -> _Outcomes:
        """Return the states after an event, equal ones merged, each with its probability."""
        found: dict[str, tuple[Fraction, _Node]] = {}
        for chance, rewards in self.draws.outcomes(event):
            state = self.game.state()
            earned = tuple([old + float(new) for old, new in zip(node.earned, rewards, strict=True)])
            key = json.dumps([state, earned], sort_keys=True) if chance < 1 else ""
            before = found.get(key)
            total = chance if before is None else before[0] + chance
            found[key] = total, _Node(state, (), earned, node.last)
        self.game.news.clear()
        return [(float(chance), after) for chance, after in found.values()]

    def _added(self, parent: int, slot: int, chance: float, mover: int, after: _Outcomes) -> tuple[int, _Outcomes]:
        if len(self.events) == self.most_nodes:
            raise ConfigError(
                f"{self.game.name} has more than {self.most_nodes:,} histories: choose smaller options of the game "
                "(`--option` of `turngym solve`), or raise most_nodes of game_tree() in Python."
            )
        self.events.append((parent, slot, chance, mover))
        return len(self.events) - 1, after

    def _children(self, index: int, outcomes: _Outcomes) -> Iterator[tuple[int, _Outcomes]]:
        if len(outcomes) > 1:
            for chance, node in outcomes:
                yield self._added(index, -1, chance, self.game.num_seats, [(1.0, node)])
            return
        [(_, node)] = outcomes
        self.game.load(node.state)
        asked = self.game.asked()
        if not asked:
            self.ends[index] = node.earned
            return
        seat = asked[len(node.taken)]
        found = self.sets[self._set(index, seat, node)]
        for place, action in enumerate(found.actions):
            slot = found.start + place
            last = (*node.last[:seat], slot, *node.last[seat + 1 :])
            chosen = node._replace(taken=(*node.taken, action), last=last)
            if len(chosen.taken) < len(asked):
                yield self._added(index, slot, 1.0, seat, [(1.0, chosen)])
                continue
            actions = dict(zip(asked, chosen.taken, strict=True))
            after = self._outcomes(lambda: self._commit(node.state, actions), chosen)  # noqa: B023  (called at once)
            yield self._added(index, slot, 1.0, seat, after)

    def _commit(self, state: JSONValue, actions: Mapping[int, str]) -> Any:
        self.game.load(state)
        return self.game.commit(actions)

    def _set(self, node: int, seat: int, at: _Node) -> int:
        """Return the information set of a seat that decides, new or known."""
        name, last = self.game.anchor(seat), at.last[seat]
        known, actions = self.index.get((seat, name)), self.choose(seat, self.game.legal_actions(seat))
        if known is not None:
            if self.before[known] != last or self.sets[known].actions != actions:
                raise ConfigError(
                    f"the anchor {name!r} of {self.game.name} stands for histories that the seat can tell apart: it "
                    "needs anchors with perfect recall."
                )
            return known
        if not actions:
            raise ConfigError(
                f"{self.game.name} lists no actions at {name!r:.200}, or none of those to consider: free text cannot "
                "be enumerated."
            )
        number = len(self.sets)
        depth = self.sets[self.set_of[last]].depth + 1 if last >= 0 else 0
        self.index[seat, name] = number
        self.sets.append(InformationSet(seat, name, actions, len(self.set_of), depth, node))
        self.before.append(last)
        self.set_of += [number] * len(actions)
        return number
