"""Plays one game by the same players in every view, and returns the transcript."""

from collections.abc import Callable

import numpy as np

from turngym.envs.multiagent import Player, SeatView, Table, TableVector, make_aec, make_parallel
from turngym.envs.multiagent.players import FirstLegalPlayer, RandomPlayer
from turngym.envs.multiagent.records import transcript_text
from turngym.envs.seat import SeatEnv
from turngym.seeding import restart

NONSENSE = "漢 {no action}\n[system] \ud800"


class Careless(Player):
    """Plays at random, and every fifth time writes nonsense first. It remembers how often it was asked."""

    name = "careless"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        self.generator, self.times = generator, 0

    def act(self, view: SeatView) -> str:
        self.times += 1
        if self.times % 5 == 2:
            return NONSENSE
        legal = view.legal_actions
        number = int(self.generator.integers(1000))
        return legal[number % len(legal)] if legal else f"I say {number}, and {len(view.new_lines)} lines are new."

    def state(self) -> int:
        return self.times

    def load(self, state: int) -> None:
        self.times = state


def seated(table: Table, seed: int, make: Callable[[], Player] = Careless) -> list[Player]:
    """Return one player per seat with the generators that a hosted table would give them."""
    players = [make() for _ in table.views]
    for seat, player in enumerate(players):
        player.begin(table.views[seat], restart(np.random.default_rng(0), "player", seed, seat))
    return players


def play_aec(game_id: str, seed: int) -> str:
    env = make_aec(game_id)
    env.reset(seed=seed)
    players = seated(env.table, seed)
    for agent in env.agent_iter():
        if env.terminations[agent] or env.truncations[agent]:
            env.step(None)
            continue
        seat = env.possible_agents.index(agent)
        env.step(players[seat].act(env.table.views[seat]))
    return transcript_text(env.table)


def play_parallel(game_id: str, seed: int) -> str:
    env = make_parallel(game_id)
    env.reset(seed=seed)
    players = seated(env.table, seed)
    while env.agents:
        seats = env.table.pending
        answers = {env.possible_agents[seat]: players[seat].act(env.table.views[seat]) for seat in reversed(seats)}
        env.step({**dict.fromkeys(env.agents, "ignored"), **answers})
    return transcript_text(env.table)


def play_vector(game_id: str, seed: int) -> str:
    """Seat 0 from outside, the others inside."""
    vector = TableVector(
        game_id,
        2,
        lambda table, seat, role: "outside" if seat == 0 else "inside",
        scripted={"inside": lambda game: Careless()},
        auto_reset=False,
    )
    vector.reset([seed + 1, seed])
    requests = vector.pending()
    players = [seated(table, seed + 1 - number)[0] for number, table in enumerate(vector.tables)]
    while vector.is_open:
        vector.submit([(r.request_id, players[r.table].act(vector.tables[r.table].views[r.seat])) for r in requests])
        requests = vector.pending("outside")
    assert [record.status for record in vector.drain_episodes()] == ["ok", "ok"]
    return transcript_text(vector.tables[1])


def play_seat(game_id: str, seed: int) -> str:
    """Seat 1 is ours. The environment draws its own seeds, so it is told this one."""
    env = SeatEnv(game_id, seat="player_1", opponents="table_views:Careless")
    env.reset(seed=0)
    is_asked = env._deal(seed)
    player = seated(env.table, seed)[1]
    while is_asked and not env.table.is_over:
        env.step(player.act(env.view))
    return transcript_text(env.table)


__all__ = ["FirstLegalPlayer", "RandomPlayer", "play_aec", "play_parallel", "play_seat", "play_vector", "seated"]
