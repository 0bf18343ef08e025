"""The games of OpenSpiel between seats, played for real where `make test-integration` put them."""

from typing import Any

import numpy as np
import pytest
from table_play import at_random, decisions, match, started

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.check import check
from turngym.envs.multiagent import make_aec, make_game, make_parallel, make_player
from turngym.envs.multiagent.equilibria.evaluation import evaluate_policy
from turngym.envs.multiagent.equilibria.tree import game_tree
from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.multiagent.table import Table
from turngym.envs.open_spiel.game import OpenSpiel
from turngym.errors import ConfigError, UnknownName
from turngym.seeding import stream

pytestmark = pytest.mark.integration
pyspiel = pytest.importorskip("pyspiel", reason="it is in .venvs/games only: run make test-integration")

GAME = "turngym/OpenSpiel-v0"
SEAT = "turngym/OpenSpielSeat-v0"
NEEDS_OPTIONS = {
    *("add_noise", "cached_tree", "efg_game", "misere", "nfg_game", "normal_form_extensive_game", "repeated_game"),
    *("repeated_poker", "restricted_nash_response", "start_at", "turn_based_simultaneous_game", "zerosum"),
}
REFUSED = NEEDS_OPTIONS | {"crossword"} | {name for name in pyspiel.registered_names() if name.startswith("mfg_")}
PLAYED = sorted(set(pyspiel.registered_names()) - REFUSED)
SLOW = {"bridge": 1, "bridge_uncontested_bidding": 1, "colored_trails": 3}
"""Games that need seconds for a start or an end -> their episodes."""
SETTINGS: dict[str, dict[str, Any]] = {"bridge_uncontested_bidding": {"num_redeals": 1}}
"""Games whose score solves many deals -> a setting with fewer."""
EPISODES, MOST_MOVES = 5, 300


def made(rules: str, **options: Any) -> OpenSpiel:
    game = make_game(GAME, rules=rules, **options)
    assert isinstance(game, OpenSpiel)
    return game


def _require_restorable(table: Table, fresh: Game) -> None:
    """Restore a snapshot at another table, which must then show and do the same."""
    other, saved = Table(fresh), table.snapshot()
    other.restore(saved)
    assert other.snapshot() == saved
    assert [view.anchor for view in other.views] == [view.anchor for view in table.views]


def test_all_games_play_end_within_their_range_and_restore() -> None:
    assert len(PLAYED) == 109
    for rules in PLAYED:
        game, fresh = (made(rules, setting=SETTINGS.get(rules)) for _ in range(2))
        low, high = game.score_range
        for episode in range(SLOW.get(rules, EPISODES)):
            table = started(game, episode)
            for move, _ in enumerate(decisions(table, at_random(stream(rules, episode)))):
                assert all(table.info(seat)["anchor"] for seat in game.everyone), rules
                if episode == 0 and move == 4:
                    _require_restorable(table, fresh)
                if move == MOST_MOVES:
                    break
            scores = [game.score(seat) for seat in game.everyone]
            assert table.returns == pytest.approx(scores), rules
            assert not table.is_over or all(low - 1e-6 <= score <= high + 1e-6 for score in scores), rules


@pytest.mark.parametrize("rules", sorted(REFUSED))
def test_what_cannot_be_played_is_said(rules: str) -> None:
    with pytest.raises(ConfigError, match=f"OpenSpiel's game {rules} cannot be played here"):
        made(rules)


@pytest.mark.parametrize(
    "rules", ["kuhn_poker", "leduc_poker", "connect_four", "goofspiel", "hanabi", "tarok", "blackjack"]
)
def test_a_seat_keeps_every_promise(rules: str) -> None:
    assert not check(SEAT, options={"rules": rules}, episodes=1, in_process=True).failed


def test_the_same_seed_gives_the_same_game_even_where_the_game_draws_chance_itself() -> None:
    for rules in ("tarok", "negotiation", "bridge_uncontested_bidding", "backgammon", "stones_and_gems"):
        logs = []
        for _ in range(2):
            table = started(made(rules), 3)
            for move, _ in enumerate(decisions(table, at_random(stream("same")))):
                if move == 60:
                    break
            logs.append((table.log, [view.anchor for view in table.views]))
        assert logs[0] == logs[1], rules
    positions = {str(started(made("tarok"), seed).views[0].anchor) for seed in range(5)}
    assert len(positions) == 5


@pytest.mark.parametrize(("rules", "exploitability"), [("kuhn_poker", 0.458333), ("leduc_poker", 2.373611)])
def test_known_exploitability_of_uniform_play(rules: str, exploitability: float) -> None:
    tree = game_tree(made(rules))
    assert evaluate_policy(tree, tree.uniform()).exploitability == pytest.approx(exploitability, abs=1e-6)


def test_search_beats_random_play_and_repeats() -> None:
    for rules, least in (("tic_tac_toe", 3), ("leduc_poker", -60)):
        games = [match(made(rules), ["mcts:200", "random"], seed) for seed in range(5)]
        assert sum(table.returns[0] for table in games) >= least
        again = match(made(rules), ["mcts:200", "random"], 0)
        assert again.actions == games[0].actions


def test_a_search_plays_the_game_at_its_table_and_not_the_one_it_was_made_with() -> None:
    """As in tournaments."""
    for seed in range(4):
        search = make_player("mcts:200", made("tic_tac_toe"))
        assert match(made("tic_tac_toe"), ["random", search], seed).returns[1] >= 0


@pytest.mark.parametrize("rules", ["goofspiel", "hanabi", "tarok"])
def test_games_that_cannot_be_searched_say_so(rules: str) -> None:
    with pytest.raises(ConfigError, match="the player mcts cannot search"):
        match(made(rules), ["mcts"] * made(rules).num_seats)


def test_hidden_cards_are_sampled_again() -> None:
    table = started(made("kuhn_poker"), 0)
    known, hands = table.views[0].anchor, set()
    for seed in range(20):
        table.swap_hidden(0, np.random.default_rng(seed))
        assert table.views[0].anchor == known
        hands.add(str(table.game.position))  # type: ignore[attr-defined]
    assert len(hands) == 2


def test_imperfect_information_is_told_to_its_seat_alone() -> None:
    table = started(made("kuhn_poker"), 0)
    table.answer(0, "Bet")
    assert "plays" not in "".join(table.views[1].lines) and "player_0 plays Bet." in table.views[0].lines
    table = started(made("tic_tac_toe"), 0)
    table.answer(0, table.views[0].legal_actions[0])
    assert "player_0 plays" in "".join(table.views[1].lines)


def test_answers_are_read_as_they_are_written() -> None:
    game = make_game("turngym/Chess-v0")
    (white,) = started(game).pending
    assert game.read(white, "I develop: [Nf3]") == game.read(white, "nf3") == "Nf3"
    with pytest.raises(InvalidAction):
        game.read(white, "[Qh5]")


def test_moves_that_differ_in_case_alone_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make_game("turngym/Chess-v0")
    (white,) = started(game).pending
    monkeypatch.setattr(game, "legal_actions", lambda seat: ("bxc4", "Bxc4", "Kh1"))
    assert [game.read(white, text) for text in ("[bxc4]", "[Bxc4]", "Bxc4!", "kh1")] == ["bxc4", "Bxc4", "Bxc4", "Kh1"]
    with pytest.raises(InvalidAction, match="Write one of Bxc4, bxc4 exactly"):
        game.read(white, "BXC4")


def test_a_forfeit_loses_the_most_that_can_be_lost() -> None:
    table = started(made("kuhn_poker"), 0)
    for _ in range(2):
        table.answer(0, "I do not know")
    assert table.is_over and table.returns == [-2.0, 2.0] and table.winners() == (1,)


def test_pettingzoo_plays_turns_and_simultaneous_moves() -> None:
    aec = make_aec(GAME, rules="tic_tac_toe")
    aec.reset(seed=1)
    for _ in aec.agent_iter():
        _, _, terminated, truncated, info = aec.last()
        aec.step(None if terminated or truncated else info["legal_actions"][0])
    parallel = make_parallel(GAME, rules="oshi_zumo")
    _, infos = parallel.reset(seed=1)
    while parallel.agents:
        *_, infos = parallel.step({agent: infos[agent]["legal_actions"][0] for agent in parallel.agents})


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rules": "kuhn"}, UnknownName, "kuhn_poker"),
        ({"rules": "kuhn_poker", "setting": {"player": 3}}, ConfigError, "player"),
        ({"rules": "kuhn_poker", "setting": {"players": 99}}, ConfigError, "cannot be played"),
        ({"rules": "efg_game", "setting": {"filename": "/etc/passwd"}}, ConfigError, "filename.*no game reads files"),
        ({"rules": "misere", "setting": {"game": {"name": "efg_game"}}}, ConfigError, "must be a number, a truth"),
        ({"rules": "connect_four", "setting": {"columns": 10**6}}, ConfigError, "texts"),
        ({"rules": "goofspiel", "setting": {"num_cards": 10**9}}, ConfigError, "memory|cannot be played"),
        ({"rules": "kuhn_poker", "setting": {"players": 10**20}}, ConfigError, "cannot be played"),
        ({"rules": "universal_poker", "setting": {"numPlayers": 100_000}}, ConfigError, "process died"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make_game(GAME, **options)


def test_settings_reach_the_game() -> None:
    assert made("kuhn_poker", setting={"players": 3}).num_seats == 3
