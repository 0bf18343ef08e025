"""TextArena's games for several players as games between seats, played for real where `make peers` put them."""

import random
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest
from table_play import at_random, decisions, started

from turngym.envs.check import check
from turngym.envs.multiagent import make_game
from turngym.envs.multiagent.registration import game_refusal
from turngym.envs.multiagent.table import SeatView, Table
from turngym.errors import ConfigError, UnknownName
from turngym.seeding import stream

pytestmark = pytest.mark.integration
pytest.importorskip("textarena", reason="textarena is in .venvs/peers only: run make test-integration")

ID = "turngym/TextArenaGame-v0"
OLD_PYTHON = pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python reads its f-strings from 3.12 on")
LISTED = [("TicTacToe-v0", 2), ("KuhnPoker-v0", 2), ("SimpleTak-v0", 2), ("WildTicTacToe-v0", 2)]
"""Games that list the legal actions, with their seats."""


def at(game: str, **options: Any) -> Table:
    return started(make_game(ID, rules=game, **options), options={"seed": 1})


def played(table: Table, answer: Callable[[SeatView], str]) -> int:
    count = 0
    while not table.is_over:
        (seat,) = table.pending
        assert table.answer(seat, answer(table.views[seat])).is_valid
        count += 1
    return count


@pytest.mark.parametrize(
    ("game", "seats", "answer", "moves", "returns", "winners", "last"),
    [
        ("KuhnPoker-v0", 2, "[check]", 6, [-1.0, 1.0], (1,), "Player 1 won by having more chips"),
        ("PublicGoodsGame-v0", 3, "[10]", 36, [1.0, 1.0, 1.0], (), "Player 0: 75.0 Player 1: 75.0 Player 2: 75.0"),
    ],
)
def test_whole_games_are_textarena_s(
    game: str, seats: int, answer: str, moves: int, returns: list[float], winners: tuple[int, ...], last: str
) -> None:
    """A sum that is not zero stays as it is."""
    before = random.getstate(), str(np.random.get_state())
    table = at(game, seats=seats)
    assert played(table, lambda view: answer) == moves and table.returns == returns
    assert table.winners() == winners and all(last in view.observation for view in table.views)
    assert (random.getstate(), str(np.random.get_state())) == before


@pytest.mark.parametrize(("game", "seats"), LISTED)
def test_listed_actions_are_legal_and_snapshots_replay(game: str, seats: int) -> None:
    table, other = at(game, seats=seats), Table(make_game(ID, rules=game, seats=seats))
    for move, _ in enumerate(decisions(table, at_random(stream("arena", game)))):
        if move == 4:
            other.restore(table.snapshot())
            assert [view.anchor for view in other.views] == [view.anchor for view in table.views]
            assert [view.legal_actions for view in other.views] == [view.legal_actions for view in table.views]
    assert move >= 4 and not any(counts.illegal or counts.forfeits for counts in table.counts)


@pytest.mark.parametrize("options", [{}, {"rules": "ThreePlayerIPD-v0", "seats": 3}])
def test_a_seat_keeps_every_promise(options: dict[str, Any]) -> None:
    assert not check("turngym/TextArenaGameSeat-v0", options=options, episodes=1, in_process=True).failed


def test_an_invalid_move_is_an_illegal_action_with_textarena_s_reason() -> None:
    table = at("TicTacToe-v0")
    table.answer(0, "[4]")
    (seat,) = table.pending
    assert not table.answer(seat, "[4]").is_valid and "cell 4 is already occupied" in table.views[seat].observation
    assert "(4)" in table.views[seat].anchor and "[4]" not in table.views[seat].legal_actions
    table.answer(seat, "nothing")
    assert table.is_over and table.returns[seat] == -1.0 and sum(table.returns) == 0 and table.winners() == (1 - seat,)


def test_a_game_without_an_end_is_cut_off() -> None:
    table = at("PublicGoodsGame-v0", max_moves=5)
    assert played(table, lambda view: "[0]") == 5 and table.returns == [0.0, 0.0] and table.winners() == ()
    assert all(table.is_truncated(seat) for seat in (0, 1))


@pytest.mark.parametrize(
    ("game", "options", "message"),
    [
        ("Debate-v0", {}, "its judge is a model behind a server"),
        ("Sokoban-v0", {}, r"created with seats=2\. turngym/TextArena-v0 plays games for one player"),
        ("KuhnPoker-v0", {"seats": 3}, r"number of players has to be 2, received 3. The game was created with seats=3"),
        ("KuhnPoker-v0", {"game_options": {"rounds": 1}}, "cannot make KuhnPoker-v0: TypeError"),
        ("BabyAiText-v0", {}, "cannot make BabyAiText-v0: ImportError"),
        pytest.param("Chess-v0", {}, "is written for a later Python than 3.11", marks=OLD_PYTHON),
        ("KuhnPoke-v0", {}, "Did you mean 'KuhnPoker-v0'"),
    ],
)
def test_what_cannot_be_played_is_one_sentence(game: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownName), match=message):
        make_game(ID, rules=game, **options)


def test_neither_an_answer_nor_a_snapshot_copies_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copying the log with each answer made long games quadratic."""

    class Uncopied:
        def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
            raise AssertionError("the log was copied")

    table, other = at("TicTacToe-v0"), make_game(ID)
    log = vars(table.game)["_game"].state.logs
    log.append(Uncopied())
    assert table.answer(0, "[4]").is_valid and table.answer(1, "[3]").is_valid and len(log) > 1
    monkeypatch.setattr(type(other), "read", None)
    other.load(table.game.state())
    assert other.state() == table.game.state() and other.asked() == (0,)


@pytest.mark.parametrize(
    "change", [{"seed": -1}, {"moves": ["[0]", "[0]"]}, {"moves": [4]}, {"moves": []}, {"lost": [0]}, {"lost": [7]}]
)
def test_damaged_states_are_refused(change: dict[str, Any]) -> None:
    table = at("TicTacToe-v0")
    table.answer(0, "[4]")
    state = table.game.state()
    assert isinstance(state, dict)
    with pytest.raises(ValueError, match=r"damage|possible|forfeited"):
        make_game(ID).load(state | change)


def test_files_of_others_name_a_game_alone() -> None:
    assert not game_refusal(ID, {"rules": "KuhnPoker-v0", "seats": 2})
    assert game_refusal(ID, {"rules": "os.path:join"}) and game_refusal(ID, {"game_options": {"max_rounds": 1}})
