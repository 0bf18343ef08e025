"""Games that a limit outside of their rules cuts off, and what games hold, in every view."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from held import OPEN
from table_play import say, started

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.self_play import LEARNER, GameSpec, SelfPlay
from turngym.agents.players import AgentSettings
from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.tournaments.pairings import Match
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.benchmarks.tournaments.seats import LiveGame, Roster
from turngym.envs.delegation.game import Delegation
from turngym.envs.multiagent.pettingzoo.aec import TableAEC
from turngym.envs.multiagent.pettingzoo.parallel import TableParallel
from turngym.envs.multiagent.table import Table
from turngym.envs.multiagent.vector import TableVector
from turngym.envs.seat import SeatEnv

HELD: dict[str, Any] = {"env": "held:Held", "calls": 1}


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    OPEN.clear()
    yield
    assert not OPEN


def delegation() -> Delegation:
    return Delegation(**HELD)


class Says(Agent):
    """Says the same in every turn, and takes a number for a prompt."""

    def __init__(self, text: str) -> None:
        self.text = text

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        return [Decision(action=self.text, completion=self.text) for _ in requests]

    def forget(self, episode: int) -> None:
        """There is no memory."""

    def final_prompt(self, request: Request) -> tuple[int, ...]:
        return (len(request.observation),)


@pytest.mark.parametrize(("last", "cut"), [("go", True), ("stop", False)])
def test_all_views_say_whether_a_limit_or_the_rules_ended_the_game(last: str, cut: bool) -> None:
    answers = ["go", "go", last]
    aec = TableAEC(delegation())
    aec.reset(seed=0)
    for text in answers:
        aec.step(text)
    assert set(aec.truncations.values()) == {cut}, "also of a seat that was never called"
    assert [not aec.terminations[agent] for agent in aec.agents] == [aec.truncations[agent] for agent in aec.agents]
    aec.step(None)
    aec.close()

    parallel = TableParallel(delegation())
    parallel.reset(seed=0)
    for text in answers:
        _, _, terminations, truncations, _ = parallel.step({"player_0": text})
    assert (terminations["player_0"], truncations["player_0"]) == (not cut, cut)
    parallel.close()

    seat = SeatEnv(f"{__name__}:delegation_class", seat="player_0", env="held:Held", calls=0)
    seat.reset(seed=0)
    for text in answers:
        *_, terminated, truncated, info = seat.step(text)
    assert (terminated, truncated, info["success"]) == (not cut, cut, int(not cut))
    assert seat.turn == json.loads(seat.snapshot())["turn"] == len(answers) < seat.max_turns
    again = SeatEnv(f"{__name__}:delegation_class", seat="player_0", env="held:Held", calls=0)
    again.reset(seed=1)
    again.restore(seat.snapshot())
    assert again.snapshot() == seat.snapshot()
    seat.close()
    seat.close()
    again.close()

    vector = TableVector(delegation, 1, auto_reset=False)
    vector.reset(seed=0)
    for text in answers:
        vector.submit([(one.request_id, text) for one in vector.pending()])
    record = vector.drain()[-1]
    assert (record.terminated, record.truncated, record.info["fault"]) == (not cut, cut, "")
    vector.close()


delegation_class = Delegation


@pytest.mark.parametrize(("text", "cut"), [("go", True), ("stop", False)])
def test_self_play_keeps_the_prompt_after_a_game_that_was_cut_off(text: str, cut: bool) -> None:
    tables = SelfPlay(lambda: Delegation(env="held:Held", calls=0), 1, env_id="delegation")
    [played] = tables.play([GameSpec(0, 0)], {LEARNER: Says(text)})
    assert isinstance(played, Trajectory) and (played.terminated, played.truncated) == (not cut, cut)
    assert played.truncation_reason == ("environment" if cut else "") and not played.fault
    assert bool(played.final_prompt_ids) is cut and len(OPEN) == 2, "one table, and rules to look at"
    tables.close()


def test_seats_that_can_no_longer_act_are_not_cut_off() -> None:
    """A sub-agent that has reported, and a main agent that has forfeited, have ended; those that act have not."""
    table = started(delegation())
    say(table, "<ask>help</ask>", "go", "<report>done</report>", "go", "go")
    assert [table.is_truncated(seat) for seat in (0, 1)] == [True, False]
    table.close()
    table = started(delegation())
    say(table, "<ask>help</ask>", "go", "go", "go")
    assert [table.is_truncated(seat) for seat in (0, 1)] == [True, True]
    table.close()
    table = started(delegation())
    table.expire(0)
    assert table.is_over and not table.is_truncated(0)
    table.close()
    table = started(Delegation(env="held:Held", calls=3))
    say(table, "<ask>help</ask>", "<report>done</report>", "go", "go", "go")
    assert [table.is_truncated(seat) for seat in range(4)] == [True, False, True, True], "two were never called"
    table.close()


def test_a_tournament_closes_every_game(tmp_path: Path) -> None:
    plan = TournamentPlan("turngym/Delegation-v0", {"a": "random", "b": "first_legal"}, blocks=1, options=HELD)
    _, records = play_tournament(plan, folder=tmp_path / "games")
    assert records and not OPEN


@pytest.mark.parametrize(("text", "cut"), [("go", True), ("stop", False)])
def test_the_trajectories_of_a_tournament_say_what_ended_the_game(text: str, cut: bool) -> None:
    table = Table(Delegation(env="held:Held", calls=0))
    game = LiveGame(
        Match(0, 0, ("a",)), table, Roster({"a": f"scripted:{text}"}, table.game, lambda _: AgentSettings())
    )
    while asked := list(game.asked_agents()):
        for seat, player, request in asked:
            [decision] = player.agent.act([request])
            game.answer(seat, request, decision, 0.0)
    game.content()
    [played] = game.trajectories
    assert (played.terminated, played.truncated) == (not cut, cut)
    assert played.truncation_reason == ("environment" if cut else "") and len(played.turns) == (3 if cut else 1)
    table.close()


def test_games_that_fail_to_close_lose_nothing_and_keep_no_other_open(tmp_path: Path) -> None:
    options = {"env": "held:ClosesBadly", "calls": 1}
    plan = TournamentPlan("turngym/Delegation-v0", {"a": "random", "b": "first_legal"}, blocks=1, options=options)
    _, records = play_tournament(plan, folder=tmp_path / "games")
    assert records and {record["status"] for record in records} == {"ok"} and not OPEN
    assert (tmp_path / "games" / "results.json").exists()

    tables = SelfPlay(lambda: Delegation(**options), 3, env_id="delegation")
    for table in tables.vector.tables:
        started(table.game)
    assert len(OPEN) == 4, "three tables, and rules to look at"
    tables.close()
    assert not OPEN
