"""Vectors of tables: questions, answers in any order, records, and games that depend on nothing but their seed."""

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from toy_games import Coins, Spies

from turngym.envs.multiagent import EpisodeRecord, SeatRequest, StepRecord, TableVector, make_aec
from turngym.envs.multiagent.players import SILENCE, RandomPlayer
from turngym.envs.multiagent.records import transcript_sha256
from turngym.seeding import stream_seed

GAMES = ["toy_games:Secret", "toy_games:Coins", "toy_games:Spies"]


def answer(request: SeatRequest) -> str:
    """A text that depends on what was asked and on nothing else; now and then no legal action."""
    key = f"{request.table} {request.episode} {request.seat} {request.turn} {request.observation}"
    number = int.from_bytes(hashlib.sha256(key.encode("utf8", "surrogatepass")).digest()[:4], "big")
    if number % 7 == 0 and not request.retry:
        return "\ud800 no action"
    return request.legal_actions[number % len(request.legal_actions)] if request.legal_actions else f"word {number}"


def play(
    vector: TableVector,
    num_games: int,
    pick: Callable[[list[SeatRequest]], list[SeatRequest]] = list,
    tables: int | None = None,
) -> tuple[list[EpisodeRecord], list[StepRecord]]:
    """Play until each of the first tables has ended so many games; ``pick`` chooses what is answered next."""
    episodes: list[EpisodeRecord] = []
    steps: list[StepRecord] = []
    count = vector.num_tables if tables is None else tables
    while len([e for e in episodes if e.table < count and e.episode < num_games]) < num_games * count:
        picked = pick([request for request in vector.pending() if request.episode < num_games])
        vector.submit([(request.request_id, answer(request)) for request in picked])
        episodes += vector.drain_episodes()
        steps += vector.drain()
    kept = [e for e in episodes if e.table < count and e.episode < num_games]
    return sorted(kept, key=lambda e: (e.table, e.episode)), [
        step for step in steps if step.request.table < count and step.request.episode < num_games
    ]


def mixed(table: int, seat: int, role: str) -> str:
    return "learner" if (table + seat) % 2 else "rival"


def shown(steps: list[StepRecord]) -> list[tuple[object, ...]]:
    """Return what the steps of each seat hold, without ids, in an order of their own."""
    rows = [
        (s.request.table, s.request.episode, s.request.seat, s.request.turn, s.text, s.action, s.reward, str(s.info))
        for s in steps
    ]
    return sorted(rows, key=str)


@pytest.mark.parametrize("game", GAMES)
def test_neither_batches_nor_order_nor_the_number_of_tables_change_a_game(game: str) -> None:
    generator = np.random.default_rng(5)

    def shuffled(requests: list[SeatRequest]) -> list[SeatRequest]:
        return [requests[k] for k in generator.permutation(len(requests))]

    def some(requests: list[SeatRequest]) -> list[SeatRequest]:
        return shuffled(requests)[: int(generator.integers(len(requests) + 1))]

    def last(requests: list[SeatRequest]) -> list[SeatRequest]:
        return requests[-1:]

    def fresh(num_tables: int) -> TableVector:
        vector = TableVector(game, num_tables, mixed, scripted={"rival": "random"}, invalid_penalty=0.1)
        vector.reset(seed=3)
        return vector

    whole, steps = play(fresh(5), 2)
    assert {record.status for record in whole} == {"ok"}
    for pick in (shuffled, some, last):
        records, other_steps = play(fresh(5), 2, pick)
        assert records == whole and shown(other_steps) == shown(steps)
    records, other_steps = play(fresh(9), 2, shuffled, tables=5)
    assert records == whole and shown(other_steps) == shown(steps)


@pytest.mark.parametrize("game", GAMES)
def test_the_seed_of_a_record_begins_the_same_game_in_pettingzoo_and_its_actions_end_it(game: str) -> None:
    vector = TableVector(game, 3, scripted={"learner": "random"})
    vector.reset(seed=8)
    for _ in range(3):
        vector.pending()
    records = vector.drain_episodes()
    assert len({record.seed for record in records}) == 9
    for record in records:
        env = make_aec(game)
        env.reset(seed=record.seed)
        for seat, action in record.actions:
            assert env.agent_selection == record.seats[seat]
            env.step(action)
        assert transcript_sha256(env.table) == record.transcript_sha256
        assert tuple(env.table.returns) == record.returns


def test_a_list_of_seeds_names_the_first_games_and_equal_seeds_begin_equal_games() -> None:
    vector = TableVector("toy_games:Spies", 3)
    vector.reset([7, 7, 8])
    first, same, _ = vector.pending()
    assert first.seat == same.seat and first.observation == same.observation
    assert vector.tables[0].log == vector.tables[1].log != vector.tables[2].log
    vector.reset(7)
    vector.pending()
    episodes, _ = play(vector, 1)
    assert [record.seed for record in episodes] == [stream_seed("table", 7, table) for table in range(3)]


def test_questions_are_ordered_and_filtered_and_stay_until_they_are_answered() -> None:
    vector = TableVector(lambda: Coins(3), 2, lambda table, seat, role: "a" if seat == 1 else "b")
    vector.reset(seed=0)
    requests = vector.pending()
    assert [(r.table, r.seat) for r in requests] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert vector.pending() == requests
    assert vector.pending("a") == [requests[1], requests[4]]
    assert vector.pending("b", limit=3) == [requests[0], requests[2], requests[3]]
    vector.submit([(requests[4].request_id, "heads")])
    assert vector.pending() == [*requests[:4], requests[5]]


def test_a_request_holds_what_its_seat_may_know_and_nothing_else() -> None:
    vector = TableVector("toy_games:Secret", 1)
    vector.reset(seed=0, options={"digit": 3})
    speaker = vector.pending()[0]
    assert (speaker.new_lines, speaker.legal_actions) == (("Your digit is 3.", "The digit is below 4."), ())
    vector.submit([(speaker.request_id, "hello")])
    guesser = vector.pending()[0]
    assert guesser.new_lines == ("The digit is below 4.", "player_0 says: hello")
    assert guesser.observation == "The digit is below 4.\nplayer_0 says: hello\nWhich digit is it?"
    assert (guesser.seat, guesser.turn, guesser.retry, guesser.policy) == (1, 0, 0, "learner")
    assert guesser.instructions.startswith("Guess") and guesser.anchor == "? ['hello']"


def test_the_reward_of_a_step_is_all_that_the_seat_earned_until_it_is_asked_again() -> None:
    """The speaker's first answer earns when the guesser guesses right; so does its second."""
    vector = TableVector("toy_games:Secret", 1, auto_reset=False)
    vector.reset(seed=0, options={"digit": 3})
    for text in ("three", "3", "again three", "2"):
        [request] = vector.pending()
        vector.submit([(request.request_id, text)])
    steps = [(s.request.seat, s.text, s.reward, s.terminated, s.truncated) for s in vector.drain()]
    assert steps == [
        (0, "three", 0.5, False, False),
        (1, "3", 0.5, False, False),
        (0, "again three", 0.0, True, False),
        (1, "2", 0.0, True, False),
    ]
    [record] = vector.drain_episodes()
    assert record.returns == (0.5, 0.5) and record.winners == () and not vector.is_open
    assert vector.pending() == [] and vector.drain() == []


def test_an_invalid_answer_is_asked_again_and_then_forfeits() -> None:
    vector = TableVector("toy_games:Secret", 1, retries=1, invalid_penalty=0.25, auto_reset=False)
    vector.reset(seed=0, options={"digit": 0})
    [request] = vector.pending()
    vector.submit([(request.request_id, "zero")])
    [request] = vector.pending()
    [receipt] = vector.submit([(request.request_id, "nine")])
    assert (receipt.is_taken, receipt.is_valid) == (True, False) and "legal" in receipt.reason
    [again] = vector.pending()
    assert (again.seat, again.turn, again.retry) == (1, 1, 1)
    assert again.error == receipt.reason and again.error in again.observation
    vector.submit([(again.request_id, "")])
    steps = [s for s in vector.drain() if s.request.seat == 1]
    assert [(s.action, s.is_valid, s.reward) for s in steps] == [(None, False, -0.25)]
    [request] = vector.pending()
    first = request.new_lines[-1].removeprefix("player_1 guesses ").rstrip(".")
    assert request.seat == 0 and first.isdigit(), "the game continues without the seat"
    vector.submit([(request.request_id, "zero")])
    assert vector.pending() == []
    forfeited = next(s for s in vector.drain() if s.request.seat == 1)
    assert (forfeited.action, forfeited.is_valid, forfeited.reward) == (None, False, -1.25)
    [record] = vector.drain_episodes()
    assert record.actions == ((0, "zero"), (1, None), (0, "zero")) and 1 not in record.winners
    counts = record.counts[1]
    assert (counts.answers, counts.unreadable, counts.illegal, counts.forfeits) == (2, 1, 1, 1)
    assert vector.stats()["invalid"] == 2


def test_used_unknown_and_withdrawn_ids_have_no_effect() -> None:
    vector = TableVector("toy_games:Coins", 2)
    vector.reset(seed=0)
    first, *_, last = vector.pending()
    receipts = vector.submit([(first.request_id, "heads"), (first.request_id, "tails"), (10**9, "tails"), (-1, "x")])
    assert [receipt.is_taken for receipt in receipts] == [True, False, False, False]
    assert [receipt.reason for receipt in receipts[1:]] == ["answered or withdrawn before"] + ["no such request"] * 2
    before = vector.snapshot(0)
    assert not vector.submit([(first.request_id, "heads")])[0].is_taken
    assert vector.snapshot(0) == before
    vector.reset(seed=0)
    assert not vector.submit([(last.request_id, "heads")])[0].is_taken
    assert not vector.expire([last.request_id])[0].is_taken
    assert vector.stats()["rejected"] == 6 and vector.stats()["taken"] == 1


def test_seats_whose_questions_expire_forfeit() -> None:
    vector = TableVector("toy_games:Coins", 1, auto_reset=False)
    vector.reset(seed=0)
    one, two, three = vector.pending()
    vector.submit([(two.request_id, "tails")])
    assert all(receipt.is_taken for receipt in vector.expire([one.request_id, three.request_id]))
    while vector.is_open:
        [two] = vector.pending()
        vector.submit([(two.request_id, "tails")])
    [record] = vector.drain_episodes()
    assert record.actions == ((0, None), (1, "tails"), (2, None), (1, "tails"), (1, "tails"))
    assert record.returns[0] == record.returns[2] == -1 and set(record.winners) <= {1}
    assert [counts.forfeits for counts in record.counts] == [1, 0, 1] and vector.stats()["expired"] == 2
    assert {(s.text, s.is_valid) for s in vector.drain()} == {("", False), ("tails", True)}


def test_text_of_a_megabyte_and_lone_surrogates_are_answers_like_others() -> None:
    vector = TableVector("toy_games:Secret", 1, auto_reset=False)
    vector.reset(seed=0)
    for text in ("x" * 1_000_000, "\ud800" * 3, '\udfff {"action":', "9" * 1_000_000, "2", "2"):
        for request in vector.pending():
            vector.submit([(request.request_id, text)])
    assert vector.stats()["ok"] == 1 and len(vector.drain_episodes()[0].transcript_sha256) == 64


def test_an_answer_that_is_no_text_is_refused_before_any_is_taken() -> None:
    vector = TableVector("toy_games:Coins", 1)
    vector.reset(seed=0)
    one, two, _ = vector.pending()
    with pytest.raises(TypeError, match="is int: pass a str"):
        vector.submit([(one.request_id, "heads"), (two.request_id, 3)])  # type: ignore[list-item]
    assert len(vector.pending()) == 3


def test_auto_reset_begins_the_next_game_with_the_next_questions() -> None:
    vector = TableVector(lambda: Coins(2, rounds=1), 1)
    vector.reset(seed=0)
    for episode in range(3):
        requests = vector.pending()
        assert [r.episode for r in requests] == [episode, episode] and not vector.drain_episodes()
        vector.submit([(r.request_id, "heads") for r in requests])
        assert [record.episode for record in vector.drain_episodes()] == [episode]
    assert vector.is_open and vector.stats()["ok"] == 3


def test_scripted_tables_play_one_game_per_call() -> None:
    vector = TableVector("toy_games:Spies", 4, scripted={"learner": "random"})
    vector.reset(seed=0)
    assert vector.pending() == [] and len(vector.drain_episodes()) == 4
    assert vector.pending() == [] and {record.episode for record in vector.drain_episodes()} == {1}
    assert vector.drain() == [] and vector.is_open


def test_seat_policy_sees_the_roles_and_may_return_players() -> None:
    asked: list[tuple[int, int, str]] = []

    def policy(table: int, seat: int, role: str) -> str | RandomPlayer:
        asked.append((table, seat, role))
        return "learner" if role == "spy" else RandomPlayer()

    vector = TableVector(lambda: Spies(4), 2, policy, auto_reset=False)
    vector.reset(seed=0, options=[{"spy": 2}, {"spy": 0}])
    assert {(r.table, r.seat, r.role) for r in vector.pending()} == {(0, 2, "spy"), (1, 0, "spy")}
    assert [(t, s) for t, s, _ in asked] == [(t, s) for t in range(2) for s in range(4)]
    while vector.is_open:
        vector.submit([(r.request_id, answer(r)) for r in vector.pending()])
    one, two = vector.drain_episodes()
    assert one.policies == ("random", "random", "learner", "random") and two.roles == ("spy", "guest", "guest", "guest")


def test_a_given_game_can_be_begun_at_one_table() -> None:
    vector = TableVector("toy_games:Secret", 2, auto_reset=False)
    vector.reset(seed=0)
    vector.pending()
    vector.begin(1, seed=99, options={"digit": 2})
    requests = vector.pending()
    assert [(r.table, r.episode) for r in requests] == [(0, 0), (1, 1)]
    assert requests[1].new_lines[0] == "Your digit is 2." and not vector.drain_episodes()


def test_what_the_generic_players_say_is_taken_where_any_text_will_do() -> None:
    vector = TableVector("toy_games:Secret", 1, scripted={"learner": "first_legal"}, auto_reset=False)
    vector.reset(seed=0)
    vector.pending()
    said = [action for seat, action in vector.drain_episodes()[0].actions if seat == 0]
    assert said == [SILENCE, SILENCE]
