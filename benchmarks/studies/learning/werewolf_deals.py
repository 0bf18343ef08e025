"""Games between policies, players and an oracle on the same deals, for the studies of self-play.

Every deal is played once from either side, so that two policies, or one before and after training, compare in pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.self_play import LEARNER, GameSpec, PlayerAgent, SelfPlay
from turngym.agents.trajectory import Trajectory
from turngym.envs.multiagent.registration import make_game
from turngym.envs.multiagent.table import Table
from turngym.envs.werewolf.game import Werewolf
from turngym.envs.werewolf.roles import WEREWOLF
from turngym.seeding import stream_seed

GAME = "turngym/WerewolfSmall-v0"
OPTIONS = {"talk_rounds": 0, "vote_protocol": "sequential"}
SIDES = ("village", "werewolves")
TABLES = 128
ORACLE = "oracle"
BOOTSTRAPS = 5_000
Won = dict[str, list[int]]
"""Side -> 1 for each deal that was won from it, else 0."""


class Oracle(Agent):
    """Knows all roles, which no seat may: about the most that can be won.

    The village votes for the werewolf, looks at it, and protects the seer. The werewolf kills and votes for the seer
    first, then whom most ballots name, and never kills a doctor, which protects itself.

    Args:
        tables: The tables that requests come from.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tables

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return the best legal action of each."""
        return [Decision(self._best(request)) for request in requests]

    def _best(self, request: Request) -> str:
        game, seat = self.tables[request.slot].game, int(request.info["seat"])
        assert isinstance(game, Werewolf)
        legal: Sequence[str] = request.info["legal_actions"]
        worth = {action: self._worth(game, seat, int(action[-1])) for action in legal if action != "abstain"}
        return max(worth, key=worth.__getitem__)

    @staticmethod
    def _worth(game: Werewolf, seat: int, target: int) -> float:
        if game.role(seat) != WEREWOLF:
            if game.phase() == "night" and seat == game.doctor:
                return float(target == game.seer)
            return float(game.role(target) == WEREWOLF)
        if game.phase() == "night":
            return float(target == game.seer) - float(target == game.doctor)
        return sum(named == target for named in game.ballots.values()) + 0.5 * (target == game.seer)


def is_won(game: Trajectory) -> int:
    """Return whether a game was won; a draw is not won."""
    return int(game.success == 1)


class Games:
    """Tables at which policies meet.

    Args:
        env_id: The game.
        options: Its options.
    """

    def __init__(self, env_id: str = GAME, options: Mapping[str, Any] = OPTIONS) -> None:
        self.env_id = env_id
        self.tables = SelfPlay(lambda: make_game(env_id, **options), TABLES, env_id=env_id)

    def agent(self, name: str) -> Agent:
        """Return an agent of a player's name, or the oracle of Werewolf."""
        return Oracle(self.tables.vector.tables) if name == ORACLE else PlayerAgent(self.tables.vector.tables, name)

    def play(
        self,
        learner: Agent,
        opponent: str | Agent,
        deals: Sequence[int],
        measure: Callable[[Trajectory], int] = is_won,
    ) -> Won:
        """Return what the learner got from each deal from each side.

        Args:
            learner: Plays one side.
            opponent: Plays the other one: an agent, or the name of a player.
            deals: Numbers of the deals.
            measure: What a game counts, from its first seat of the learner.
        """
        name = opponent if isinstance(opponent, str) else "opponent"
        agents = {LEARNER: learner, **({} if isinstance(opponent, str) else {name: opponent})}
        seeds, sides = [stream_seed("held-out deal", self.env_id, deal) % 2**31 for deal in deals], self.tables.sides
        specs = [
            GameSpec(len(sides) * index + side, seed, index, name, side)
            for index, seed in enumerate(seeds)
            for side in range(len(sides))
        ]
        found: dict[int, int] = {}
        for trajectory in self.tables.play(specs, agents):
            found.setdefault(trajectory.spec.episode // self.tables.rules.num_seats, measure(trajectory))
        return {side: [found[spec.number] for spec in specs if spec.side == place] for place, side in enumerate(sides)}


def interval(by_seed: Sequence[Sequence[float]], seed: int = 0) -> dict[str, float]:
    """Return a mean with its 95 % bootstrap interval: training seeds are drawn, and deals, the same for all of them.

    Args:
        by_seed: Training seed -> a value for each deal. A single one gives the interval over deals alone.
        seed: Seeds the draws.
    """
    values, generator = np.asarray(by_seed, dtype=float), np.random.default_rng(seed)
    runs, deals = values.shape
    drawn = generator.multinomial(deals, np.full(deals, 1 / deals), BOOTSTRAPS)
    weights = generator.multinomial(runs, np.full(runs, 1 / runs), BOOTSTRAPS)
    means = (weights * (drawn @ values.T)).sum(1) / (runs * deals)
    low, high = np.percentile(means, [2.5, 97.5])
    return {"mean": float(values.mean()), "low": float(low), "high": float(high)}


def gains(before: Mapping[int, Sequence[int]], after: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    """Return shares of games won before and after training, and their paired difference, with intervals.

    Args:
        before: Training seed -> whether the policy before training won each deal.
        after: The same of the policy after training.
    """
    runs = sorted(before)
    apart = {run: [a - b for a, b in zip(after[run], before[run], strict=True)] for run in runs}
    return {
        "before": interval([before[run] for run in runs]),
        "after": interval([after[run] for run in runs]),
        "gain": interval([apart[run] for run in runs]),
        "seeds": {
            str(run): {
                "before": interval([before[run]]),
                "after": interval([after[run]]),
                "gain": interval([apart[run]]),
            }
            for run in runs
        },
    }
