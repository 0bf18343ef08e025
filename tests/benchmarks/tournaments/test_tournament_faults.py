"""Faults of players, agents and rules in tournaments: counted, never dropped, and nobody else notices."""

import itertools
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import tournament_games
from tournament_games import HIGH_DIGITS, of, plan, same

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import AgentSettings
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.run import play_matches, play_tournament
from turngym.benchmarks.tournaments.seats import Roster


@pytest.mark.parametrize(("name", "kind"), [("Broken", "OSError"), ("Wordless", "TypeError"), ("Absent", "OSError")])
def test_a_player_that_raises_twice_forfeits_and_no_game_is_dropped(name: str, kind: str) -> None:
    found, records = play_tournament(plan("random", of(name)))
    assert len(records) == found["n_games"] == 6 * 4 and found["env_errors"] == 0
    for record in records:
        broken = [seat for seat, player in record["seat_map"].items() if player == name.lower()]
        assert (record["status"] == "agent_error") == bool(broken)
        assert not set(broken) & set(record["winners"])
        for seat in broken:
            assert record["seats"][seat]["faults"] == record["seats"][seat]["forfeits"] == 1
            assert f"{name.lower()} at seat " in record["fault"] and kind in record["fault"]
        for seat, action in record["actions"]:
            assert (record["seat_map"][f"player_{seat}"] == "random") == (action is not None)
    assert found["agent_errors"] == 6 * 3
    assert found["players"][name.lower()]["usage"]["faults"] == 6 * 5


def test_a_text_of_a_class_of_its_own_is_read_as_plain_text() -> None:
    found, records = play_tournament(plan("random", of("Trapped")))
    assert {record["status"] for record in records} == {"ok"} and found["env_errors"] == 0
    pairs = [(record["seat_map"][f"player_{seat}"], action) for record in records for seat, action in record["actions"]]
    assert {action for player, action in pairs if player == "trapped"} == {"9"}


def test_a_player_that_raises_once_is_asked_again() -> None:
    found, records = play_tournament(plan("random", of("Flaky")))
    assert {record["status"] for record in records} == {"ok"}
    assert found["players"]["flaky"]["all"]["ace_share"]["value"] >= 0.4
    calls = sum(name == "flaky" for record in records for name in record["seat_map"].values())
    assert found["retried"] == sum(record.get("retried", 0) for record in records) == calls
    assert re.fullmatch(
        r"flaky at seat \d: OSError: only once \(tournament_games.py, line \d+\)", found["first_retried"]
    )


def test_rules_that_raise_are_tried_again_and_then_count_as_a_draw() -> None:
    tournament = plan("random", "ace", game=of("BreaksAtTheEnd"), blocks=20)
    found, records = play_tournament(tournament)
    sound = play_tournament(replace(tournament, game=HIGH_DIGITS))[1]
    broken = [record for record in records if record["status"] == "env_error"]
    assert len(records) == 80 and 0 < found["env_errors"] == len(broken) < 60
    for record, other in zip(records, sound, strict=True):
        if record["status"] == "env_error":
            assert "no luck" in record["fault"] and record["restarts"] == 1 and record["winners"] == []
            assert record["teams"] == other["teams"], "so that the draw is counted"
        else:
            assert same({**record, "env": 0, "ruleset_hash": 0}, {**other, "env": 0, "ruleset_hash": 0}), "no trace"
    assert sum(cell["draws"] for cell in found["win_matrix"]) >= len(broken) * 2


def test_rules_that_raise_once_leave_no_trace_but_a_count() -> None:
    tournament_games.BreaksOnce.tries = itertools.count()
    tournament = plan("random", "ace", game=of("BreaksOnce"), blocks=3).settled()
    roster = Roster(tournament.players, tournament.make_game(), lambda name: AgentSettings())
    records = list(play_matches(tournament, roster, tournament.matches(), 4))
    assert sorted(record["restarts"] for record in records) == [0] * 11 + [1]
    assert {record["status"] for record in records} == {"ok"} and len(records) == 12


def test_rules_that_raise_inside_of_a_players_turn_are_not_the_players_fault() -> None:
    found, records = play_tournament(plan("random", "first_legal", "scripted:1", game=of("BreaksAsking"), blocks=20))
    assert found["agent_errors"] == 0 < found["env_errors"] < len(records)


class Moody(Agent):
    """Names 9. Raises for every batch with one of some seats, or at every so manieth call."""

    def __init__(self, bad_seats: Sequence[int] = (), every: int = 0) -> None:
        self.bad_seats, self.every = bad_seats, every
        self.batches: list[int] = []
        self.open: set[int] = set()

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        self.batches.append(len(requests))
        if self.every and len(self.batches) % self.every == 0:
            raise OSError("now and then")
        if any(request.slot in self.bad_seats for request in requests):
            raise OSError("out of order")
        self.open |= {request.episode for request in requests}
        return [Decision("9", "9", (1, 2, 3), (4, 5)) for _ in requests]

    def forget(self, episode: int) -> None:
        self.open.discard(episode)


AGENTS: list[Moody] = []
MODEL = "module:agents_of_this_test.last"
MakeAgent = Callable[..., Moody]


def last(settings: AgentSettings) -> Moody:
    return AGENTS[-1]


@pytest.fixture
def make_moody(monkeypatch: pytest.MonkeyPatch) -> MakeAgent:
    """Make agents, the last of which is where the backend ``module`` finds it."""

    def make(bad_seats: Sequence[int] = (), every: int = 0) -> Moody:
        AGENTS.append(Moody(bad_seats, every))
        return AGENTS[-1]

    monkeypatch.setitem(sys.modules, "agents_of_this_test", sys.modules[__name__])
    return make


def against_random() -> TournamentPlan:
    return TournamentPlan(HIGH_DIGITS, {"random": "random", "model": MODEL}, blocks=8)


def test_one_agent_answers_for_all_its_seats_at_all_tables_in_one_batch(make_moody: MakeAgent) -> None:
    model = make_moody()
    found, records = play_tournament(against_random(), tables=1000)
    held = sum(name == "model" for record in records for name in record["seat_map"].values())
    assert model.batches == [held] == [8 * 10], "the game asks everybody at once"
    assert not model.open, "every game that is over was forgotten"
    usage = found["players"]["model"]["usage"]
    assert usage["tokens_in_per_call"] == 3 and usage["tokens_out_per_call"] == 2 and usage["calls"] == 8 * 5
    model = make_moody()
    assert same(play_tournament(against_random(), tables=3)[1], records) and len(model.batches) > 5


def test_an_agent_that_fails_in_a_batch_fails_only_where_it_must(make_moody: MakeAgent) -> None:
    make_moody(bad_seats=[2])
    found, records = play_tournament(against_random(), tables=1000)
    for record in records:
        for seat, name in record["seat_map"].items():
            assert record["seats"][seat]["faults"] == (name == "model" and seat == "player_2")
    assert found["players"]["model"]["usage"]["forfeits"] > 0


def test_an_agent_that_fails_now_and_then_is_asked_again(make_moody: MakeAgent) -> None:
    make_moody(every=2)
    with pytest.warns(RuntimeWarning, match=r"when repeated or divided: \d+; model: OSError: now and then"):
        found, _ = play_tournament(against_random(), tables=3)
    assert found["agent_errors"] == 0


@pytest.mark.filterwarnings("ignore:calls for several seats at once")
@pytest.mark.parametrize("bad_seats", [[], [2]])
def test_an_error_of_a_batch_is_booked_on_no_seat(make_moody: MakeAgent, bad_seats: list[int]) -> None:
    """An agent that cannot answer for several seats at once, and one that in addition fails first at every request."""
    played = []
    for tables in (1, 1000):
        model, seen = make_moody(bad_seats), set[int]()
        decide = model.act

        def act(requests: Sequence[Request], decide: Any = decide, seen: set[int] = seen) -> list[Decision]:
            if len(requests) > 1:
                raise ValueError("one at a time")
            if requests[0].slot == 1 and requests[0].episode not in seen:
                seen.add(requests[0].episode)
                raise OSError("only once")
            decided: list[Decision] = decide(requests)
            return decided

        model.act = act  # type: ignore[method-assign]
        found, records = play_tournament(against_random(), tables=tables)
        played.append(records)
    assert same(*played)
    for record in records:
        assert record.get("retried", 0) == (record["seat_map"]["player_1"] == "model")
        assert record["status"] == ("agent_error" if record["seat_map"]["player_2"] == "model" and bad_seats else "ok")
    assert "model at seat 1: OSError: only once" in found["first_retried"]


def test_a_seat_whose_prompt_does_not_fit_takes_its_default_action_and_is_counted_apart(make_moody: MakeAgent) -> None:
    model = make_moody()
    decide = model.act

    def act(requests: Sequence[Request]) -> list[Decision]:
        decided = decide(requests)
        return [
            Decision("", too_long="a prompt has 9 tokens, more than 5") if request.slot == 1 else each
            for request, each in zip(requests, decided, strict=True)
        ]

    model.act = act  # type: ignore[method-assign]
    _, records = play_tournament(against_random(), tables=1000)
    assert len(records) == 32
    for record in records:
        for seat, name in record["seat_map"].items():
            is_cut = name == "model" and seat == "player_1"
            assert record["seats"][seat].get("too_long", 0) == record["seats"][seat]["faults"] == is_cut
            assert record["seats"][seat]["forfeits"] == is_cut
        assert ("more than 5" in record["fault"]) == (record["seat_map"]["player_1"] == "model")
