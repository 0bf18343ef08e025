"""Agents at seats: what they are asked, in which batches, and what they forget."""

from collections.abc import Sequence

import pytest
from small import small_model

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.seat_player import SeatPlayer, act_together
from turngym.agents.players import AgentSettings
from turngym.agents.players.random import RandomAgent
from turngym.agents.players.scripted import ScriptedAgent
from turngym.agents.players.transformers import transformers_agent
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.envs.multiagent import Table, make_game
from turngym.envs.multiagent.hosted import begin_game
from turngym.seeding import stream
from turngym.types import INFO_TYPES

KUHN = "turngym/KuhnPoker-v0"


class Notes(Agent):
    """Checks always, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[Request]] = []
        self.forgotten: list[int] = []

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        self.asked.append(list(requests))
        return [Decision("check")] * len(requests)

    def forget(self, episode: int) -> None:
        self.forgotten.append(episode)


def table_of(seed: int = 0, game: str = KUHN) -> Table:
    table = Table(make_game(game))
    begin_game(table, seed)
    return table


def seated(agent: Agent, table: Table, key: int = 0) -> list[SeatPlayer]:
    players = []
    for seat in table.game.everyone:
        players.append(SeatPlayer(agent))
        players[-1].begin(table.views[seat], stream("seat", key, seat))
    return players


def test_an_agent_is_asked_what_the_seat_may_know() -> None:
    agent, table = Notes(), table_of()
    first, second = seated(agent, table)
    table.answer(0, first.act(table.views[0]))
    table.answer(1, "well...")
    question = table.views[1].observation
    table.answer(1, second.act(table.views[1]))
    assert table.is_over
    [[asked_first], [asked_second]] = agent.asked
    assert asked_first.instructions == asked_second.instructions == table.instructions(0)
    assert asked_second.observation == question and "No action was found" in question
    assert asked_second.info["action_is_valid"] is False and asked_first.info["action_is_valid"] is True
    assert sorted(asked_first.info["legal_actions"]) == ["bet", "check"] and asked_first.info["anchor"] in "JQK"
    for request in (asked_first, asked_second):
        assert {key: type(value) for key, value in request.info.items()} == INFO_TYPES
    assert asked_first.episode != asked_second.episode and (asked_first.turn, asked_second.turn) == (0, 0)


def test_seats_of_one_agent_share_a_call_and_keep_their_order() -> None:
    one, other, tables = Notes(), ScriptedAgent(["bet"]), [table_of(seed) for seed in range(4)]
    agents = [one, other, one, one]
    players = [seated(agent, table, key)[0] for key, (agent, table) in enumerate(zip(agents, tables, strict=True))]
    asked = [(player, player.request(table.views[0])) for player, table in zip(players, tables, strict=True)]
    assert [decision.action for decision in act_together(asked)] == ["check", "bet", "check", "check"]
    assert [[request.observation for request in batch] for batch in one.asked] == [
        [tables[i].views[0].observation for i in (0, 2, 3)]
    ]
    assert [player.request(table.views[0]).turn for player, table in zip(players, tables, strict=True)] == [1] * 4


def test_an_agent_that_gives_too_few_decisions_is_refused() -> None:
    class Short(Notes):
        def act(self, requests: Sequence[Request]) -> list[Decision]:
            return []

    table = table_of()
    with pytest.raises(ValueError, match="Short gave 0 decisions to 1 requests"):
        seated(Short(), table)[0].act(table.views[0])


def test_a_game_is_forgotten_at_its_end_and_at_the_next_beginning() -> None:
    agent, table = Notes(), table_of()
    player = seated(agent, table)[0]
    first = player.request(table.views[0]).episode
    player.begin(table.views[0], stream("next"))
    assert agent.forgotten == [first]
    second = player.request(table.views[0]).episode
    player.end()
    player.end()
    assert agent.forgotten == [first, second] and first != second


def test_the_number_of_episode_and_turn_can_be_saved() -> None:
    agent, table = RandomAgent(), table_of()
    player, other = seated(agent, table)[0], SeatPlayer(agent)
    player.act(table.views[0])
    other.load(player.state())
    mine, copied = player.request(table.views[0]), other.request(table.views[0])
    assert (copied.episode, copied.turn) == (mine.episode, mine.turn) and mine.turn == 1
    assert [player.act(table.views[0]) for _ in range(10)] == [other.act(table.views[0]) for _ in range(10)]


@pytest.mark.parametrize("mode", ["window", "conversation"])
def test_a_language_model_plays_alike_whatever_shares_its_batch(mode: str) -> None:
    model = small_model()
    settings = AgentSettings(max_new_tokens=3, format="plain", prompt={"mode": mode, "max_prompt_tokens": 20_000})
    plan = TournamentPlan("turngym/TicTacToe-v0", {"model": "module:unused", "random": "random"}, 2, agents=settings)
    found = []
    for tables in (1, 64):
        agent = transformers_agent(model, settings)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("turngym.benchmarks.tournaments.seats.make_agent", lambda *_, agent=agent: agent)
            results, records = play_tournament(plan, tables=tables)
        assert results["agent_errors"] == 0 and not agent._memories
        used = [record["seats"][seat] for record in records for seat in _seats_of(record, "model")]
        assert any(seat["calls"] for seat in used) and all(seat["tokens_out"] for seat in used if seat["calls"])
        found.append([(record["actions"], record["transcript_sha256"], record["seats"]) for record in records])
    for one, many in zip(*found, strict=True):
        assert one[:2] == many[:2]
        assert [one[2][seat]["tokens_in"] for seat in one[2]] == [many[2][seat]["tokens_in"] for seat in many[2]]


def _seats_of(record: dict[str, dict[str, str]], name: str) -> list[str]:
    return [seat for seat, player in record["seat_map"].items() if player == name]
