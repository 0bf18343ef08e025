"""Every game for two seats: the promises that hold for all of them, checked in random games."""

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_play import at_random, decisions, match, seen_by, started

from turngym.envs.multiagent import GAMES, make_game
from turngym.envs.multiagent.game import InvalidAction
from turngym.envs.multiagent.table import Table
from turngym.envs.tablegames import SPECS
from turngym.errors import ConfigError
from turngym.seeding import stream

IDS = sorted(SPECS)
HIDDEN = {
    "turngym/KuhnPoker-v0",
    "turngym/KuhnPokerMatch-v0",
    "turngym/LeducPoker-v0",
    "turngym/LiarsDice-v0",
    "turngym/LiarsDiceFive-v0",
    "turngym/SimpleNegotiation-v0",
    "turngym/SimpleNegotiationFive-v0",
    "turngym/BargainingHidden-v0",
    "turngym/PriceNegotiationHidden-v0",
    "turngym/Persuasion-v0",
    "turngym/PersuasionTalk-v0",
}
ZERO_SUM = {
    "kuhn_poker",
    "leduc_poker",
    "liars_dice",
    "tic_tac_toe",
    "connect_four",
    "matching_pennies",
    "rock_paper_scissors",
    "simple_negotiation",
}
REVEALED = " wins ", "public card", "The product was "
ANY_TEXT = st.text(st.characters(exclude_categories=()))


def test_every_game_is_registered() -> None:
    assert set(IDS) <= set(GAMES)


@pytest.mark.parametrize("game_id", IDS)
@pytest.mark.parametrize("seed", range(3))
def test_games_end_and_pay_what_they_sum_up(game_id: str, seed: int) -> None:
    table = started(make_game(game_id), seed)
    progress = [0.0, 0.0]
    for seat in decisions(table, at_random(stream("play", seed))):
        info = table.info(seat)
        assert progress[seat] <= info["progress"] < 1
        progress[seat] = info["progress"]
        assert table.views[seat].observation and table.views[seat].anchor
        assert table.game.winners() == ()
        assert table.views[seat].instructions == table.instructions(1 - seat)
    assert table.info(0)["progress"] == table.info(1)["progress"] == 1
    winners = table.game.winners()
    if table.game.name in ZERO_SUM:
        assert sum(table.returns) == 0
        assert winners == tuple(seat for seat in (0, 1) if table.returns[seat] > 0)
    assert all(isinstance(number, float) for number in table.game.metrics().values())
    assert not any(counts.illegal or counts.unreadable for counts in table.counts)


@pytest.mark.parametrize("game_id", IDS)
def test_the_same_seed_gives_the_same_game(game_id: str) -> None:
    tables = []
    game = make_game(game_id)
    started(game, 99)
    for made in (game, make_game(game_id)):  # one that has been used before, one that has not
        table = started(made, 5)
        for _ in decisions(table, at_random(stream("same"))):
            pass
        tables.append(table)
    assert tables[0].log == tables[1].log and tables[0].snapshot() == tables[1].snapshot()


@pytest.mark.parametrize("game_id", IDS)
def test_a_snapshot_at_every_decision_goes_on_as_the_game_did(game_id: str) -> None:
    table = started(make_game(game_id), 2)
    snapshots, choices = [table.snapshot()], []
    for seat in decisions(table, at_random(stream("one"))):
        choices.append(seat)
        if len(table.actions) % 7 < 3:
            snapshots.append(table.snapshot())
    final, other = table.snapshot(), Table(make_game(game_id))
    for snapshot in snapshots:
        other.restore(snapshot)
        assert other.snapshot() == snapshot
        done = len(other.actions)
        for seat, action in table.actions[done:]:
            if other.is_over or seat not in other.pending:
                continue
            assert action is not None and other.answer(seat, action).is_valid
        assert [line.text for line in other.log] == [line.text for line in table.log]
        assert other.returns == table.returns and other.game.state() == table.game.state()
    other.restore(final)
    assert other.is_over and other.snapshot() == final


@pytest.mark.parametrize("game_id", IDS)
def test_state_and_load_survive_json_and_share_nothing(game_id: str) -> None:
    game, other = make_game(game_id), make_game(game_id)
    table = started(game, 1)
    started(other, 8)
    for seat in decisions(table, at_random(stream("json"))):
        state = json.loads(json.dumps(game.state()))
        other.load(state)
        assert other.state() == game.state()
        assert [other.anchor(s) for s in (0, 1)] == [game.anchor(s) for s in (0, 1)]
        assert (other.asked(), other.phase(), other.prompt(seat)) == (game.asked(), game.phase(), game.prompt(seat))
        before = json.dumps(state)
        other.commit({s: next(iter(game.legal_actions(s)), "silent") for s in other.asked()})
        assert json.dumps(state) == before


@pytest.mark.parametrize("game_id", IDS)
def test_canonical_actions_are_read_as_themselves(game_id: str) -> None:
    """What a record holds can be played again."""
    table = started(make_game(game_id), 3)
    for seat in decisions(table, at_random(stream("canonical"))):
        for action in table.views[seat].legal_actions[:40]:
            read = table.game.read(seat, action)
            assert read == action and table.game.read(seat, read) == read
            assert table.game.read(seat, f" {action.upper()} ").casefold().endswith(action.casefold())


@pytest.mark.parametrize("game_id", IDS)
def test_what_a_seat_cannot_know_changes_nothing_that_it_sees(game_id: str) -> None:
    changed = 0
    for seed in range(8):
        table, generator = started(make_game(game_id), seed), stream("swap", seed)
        for asked in decisions(table, at_random(generator)):
            for seat in (0, 1):
                state, before = table.game.state(), seen_by(table, seat)
                has_changed = table.game.swap_hidden(seat, generator)
                assert has_changed == (table.game.state() != state)
                assert seen_by(table, seat) == before
                changed += has_changed
                table.game.load(state)
            assert asked in table.pending
    assert (changed > 0) == (game_id in HIDDEN)


@pytest.mark.parametrize("game_id", sorted(HIDDEN))
def test_a_game_with_swapped_secrets_goes_on_unnoticed(game_id: str) -> None:
    """The same answers after a swap: the seat reads the same lines until the rules reveal something."""
    compared = 0
    for watching, seed in product((0, 1), range(20)):
        plain, swapped = started(make_game(game_id), seed), started(make_game(game_id), seed)
        if not swapped.game.swap_hidden(watching, stream("swap", seed)):
            continue
        choose = at_random(stream("play", seed))
        # A showdown reveals the cards, the next hand or round brings others; in other games nothing is ever revealed.
        while plain.pending and not any(word in line.text for line in plain.log for word in REVEALED):
            assert seen_by(plain, watching) == seen_by(swapped, watching)
            compared += 1
            seat = plain.pending[0]
            text = choose(plain, seat)
            plain.answer(seat, text)
            if not swapped.answer(seat, text).is_valid:
                break  # a seat has other goods now, and cannot do the same
    assert compared > 12


@pytest.mark.parametrize("game_id", IDS)
def test_a_legal_action_is_read_alone_in_brackets_and_in_json(game_id: str) -> None:
    table = started(make_game(game_id), 0)
    for _, _seat in zip(range(8), decisions(table, at_random(stream("forms"))), strict=False):
        for seat in table.pending:
            for action in table.game.legal_actions(seat):
                forms = (action, f"[{action}]", f"I choose [{action}].", json.dumps({"action": action}))
                assert {table.game.read(seat, form).partition(" | ")[0] for form in forms} == {action}


@pytest.mark.parametrize("game_id", IDS)
@settings(max_examples=25)
@given(text=ANY_TEXT, steps=st.integers(0, 3))
def test_no_text_does_more_than_be_refused(game_id: str, text: str, steps: int) -> None:
    table = started(make_game(game_id), 0)
    for _, _seat in zip(range(steps), decisions(table, at_random(stream("fuzz"))), strict=False):
        pass
    if not table.pending:
        return
    seat = table.pending[0]
    before = table.game.state()
    for form in (text, f"[{text}]", f'{{"action": "{text}", "message": "{text}"}}', f"keep {text}", f"{text} | {text}"):
        try:
            action = table.game.read(seat, form)
        except InvalidAction as error:
            assert error.reason.isprintable()
        else:
            assert table.game.read(seat, action) == action
            assert action.isprintable()
        assert table.game.state() == before


@pytest.mark.parametrize("game_id", IDS)
def test_a_seat_that_writes_a_megabyte_of_anything_loses_only_its_turn(game_id: str) -> None:
    table = started(make_game(game_id), 0)
    forms = ["{" * 10**6, "[" * 10**6, "a " * 500_000, '{"action":' * 10**5, "\n" * 10**6, "offer 1 wood " * 80_000]
    count = 0
    while table.pending and count < 60:
        answer = table.answer(table.pending[0], forms[count % len(forms)])
        assert len(answer.action or "") < 1000
        count += 1
    assert count > 1


@pytest.mark.parametrize("game_id", IDS)
def test_a_silent_seat_loses(game_id: str) -> None:
    table = started(make_game(game_id), 0)
    silent = table.pending[0]
    table.expire(silent)
    while not table.is_over:  # the other seat still answers where both are asked at once
        seat = table.pending[0]
        table.answer(seat, next(iter(table.views[seat].legal_actions), "Hm."))
    assert table.winners() == (1 - silent,) and table.counts[silent].forfeits == 1
    assert table.info(silent)["success"] == 0 and table.info(1 - silent)["success"] == 1


@pytest.mark.parametrize("game_id", IDS)
def test_the_games_own_players_play_without_an_invalid_answer(game_id: str) -> None:
    smaller = {"rows": 4, "columns": 4} if "ConnectFourSmall" in game_id else {}
    game = make_game(game_id, **smaller)
    assert game.players
    for name in game.players:
        for seed, players in enumerate([[name, "random"], ["random", name], [name, name]]):
            table = match(game, players, seed)
            assert table.is_over
            for seat, counts in enumerate(table.counts):
                if players[seat] == name:
                    assert (counts.illegal, counts.unreadable, counts.forfeits) == (0, 0, 0)


@pytest.mark.parametrize("game_id", IDS)
def test_an_unknown_option_is_refused(game_id: str) -> None:
    with pytest.raises(ConfigError, match="has no option 'colour'"):
        make_game(game_id, colour="green")
    with pytest.raises(ConfigError, match="no option 'colour'"):
        started(make_game(game_id), options={"colour": "green"})
