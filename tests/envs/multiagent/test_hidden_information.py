"""What a seat cannot know reaches it through no channel, and what a player does to its view changes nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kinds import games_without_packages
from toy_games import Spies

from turngym.envs.multiagent import Player, SeatView, Table, make_game
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.records import transcript_text
from turngym.envs.seat import SeatEnv
from turngym.seeding import stream


class Thief(Player):
    """Tries to change and to reach what it must not."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        self.refused = 0

    def act(self, view: SeatView) -> str:
        view.lines.clear()
        view.new_lines.append("You are player_0.")
        for name, value in (("seat", 0), ("name", "player_0"), ("retry", -99), ("why_again", ""), ("mark", 1)):
            with pytest.raises(AttributeError):
                setattr(view, name, value)
        return "never legal"


def test_a_player_that_changes_its_view_changes_nothing() -> None:
    env = SeatEnv("toy_games:Spies", seat="player_0", opponents=f"{__name__}:Thief")
    quiet = SeatEnv("toy_games:Spies", seat="player_0", opponents=f"{__name__}:Mute")
    for one in (env, quiet):
        one.reset(seed=0)
        while one._running:
            one.step("")
    assert env.table.log == quiet.table.log and env.table.counts == quiet.table.counts
    assert [view.lines for view in env.table.views] == [view.lines for view in quiet.table.views]
    assert all(view.lines for view in env.table.views)


class Mute(Player):
    """Never gives a legal action."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Nothing to remember."""

    def act(self, view: SeatView) -> str:
        return "never legal"


def everything(table: Table, seat: int) -> tuple[Any, ...]:
    """Return all that reaches a seat, directly or beside the text."""
    view, info = table.views[seat], table.info(seat)
    texts = view.lines, view.new_lines, view.observation, view.why_again, view.anchor, view.instructions
    facts = view.legal_actions, view.phase, view.role, view.retry, view.is_asked, view.name
    return texts, facts, repr(info), replace(table.counts[seat]), table.returns[seat]


@pytest.mark.parametrize("game_id", [*games_without_packages(), "toy_games:Secret", "toy_games:Spies"])
def test_no_channel_tells_a_seat_what_it_cannot_know(game_id: str) -> None:
    table, draw = Table(make_game(game_id), invalid_penalty=0.25), stream("channels", game_id)
    table.reset(np.random.default_rng(0))
    for turn in range(60):
        if table.is_over:
            break
        snapshot = table.snapshot()
        seat = int(draw.integers(table.game.num_seats))
        seen = everything(table, seat)
        refused = table.answer(seat, "?!") if seat in table.pending else None
        again, is_asked_again = everything(table, seat), seat in table.pending
        table.restore(snapshot)
        if table.swap_hidden(seat, np.random.default_rng(turn)):
            assert everything(table, seat) == seen
            if refused is not None and is_asked_again:
                assert table.answer(seat, "?!") == refused and everything(table, seat) == again
        table.restore(snapshot)
        asked = table.pending[int(draw.integers(len(table.pending)))]
        legal = table.views[asked].legal_actions
        table.answer(asked, legal[int(draw.integers(len(legal)))] if legal and draw.random() < 0.8 else "\ud800")


def test_hidden_facts_are_not_swapped_where_an_answer_given_would_not_fit() -> None:
    """In a night of Werewolf roles are asked at once: a wolf's answer would be none of a villager's."""
    found = []
    for seed in range(40):
        table = Table(make_game("turngym/WerewolfLarge-v0"))
        begin_game(table, seed)
        while len(table.pending) < 3 or table.game.phase() != "night":
            table.answer(table.pending[0], table.views[table.pending[0]].legal_actions[0])
        *others, doctor = table.pending
        for seat in others:
            table.answer(seat, table.views[seat].legal_actions[0])
        asked, actions = table._asked, dict(table._taken)
        found.append(table.swap_hidden(doctor, np.random.default_rng(seed)))
        assert (table.pending, table._asked, table.game.asked()) == ((doctor,), asked, asked)
        assert table._taken == actions and len(actions) > 1
        table.answer(doctor, table.views[doctor].legal_actions[0])
    assert set(found) == {True, False}


class Moving(Spies):
    """Makes seat 2 the spy whenever hidden facts are swapped."""

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        self.spy = 2
        return True


def test_hidden_facts_may_change_who_else_is_asked_but_not_whether_the_seat_is() -> None:
    table = Table(Moving())
    table.reset(np.random.default_rng(0), {"spy": 1})
    assert not table.swap_hidden(1, np.random.default_rng(0)) and table.pending == table.game.asked() == (1,)
    assert table.swap_hidden(0, np.random.default_rng(0)) and table.pending == table.game.asked() == (2,)


@pytest.mark.parametrize("game_id", ["toy_games:Coins", "toy_games:Spies", "turngym/RockPaperScissors-v0"])
def test_retries_and_waits_in_any_order_of_simultaneous_seats_are_one_game(game_id: str) -> None:
    """What a seat does depends on the decision alone: invalid answers, then a legal one or none in time."""

    def played(order: int, seed: int) -> tuple[str, list[Any], list[Any]]:
        table, shuffle = Table(make_game(game_id), retries=2, invalid_penalty=0.1), stream("order", order)
        table.reset(np.random.default_rng(seed))
        decision, first = -1, -1
        while not table.is_over:
            if len(table.log) != first:
                decision, first = decision + 1, len(table.log)
                todo = {seat: stream("deeds", seed, decision, seat) for seat in table.pending}
            seat = table.pending[int(shuffle.integers(len(table.pending)))]
            if todo[seat].random() < 0.3:
                table.answer(seat, "?!")
            elif todo[seat].random() < 0.2:
                table.expire(seat)
            else:
                legal = table.views[seat].legal_actions
                table.answer(seat, legal[int(todo[seat].integers(len(legal)))] if legal else "Hm.")
        return transcript_text(table), table.returns, table.counts

    firsts = []
    for seed in range(4):
        first, *others = [played(order, seed) for order in range(6)]
        assert all(other == first for other in others)
        firsts += first[2]
    assert sum(counts.forfeits for counts in firsts) > 0 < sum(counts.answers for counts in firsts)
