"""Players without a model, and the tables by which games and players are found."""

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from kinds import games_without_packages
from toy_games import Coins, Secret, Spies

from turngym.benchmarks.cli.terminal.components import games as listed_games
from turngym.benchmarks.cli.terminal.components import players as listed_players
from turngym.envs.multiagent import (
    GAMES,
    PLAYERS,
    Player,
    SeatView,
    Table,
    TableVector,
    make_aec,
    make_game,
    make_player,
)
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.records import ruleset_hash
from turngym.envs.registration import seat_id, specs
from turngym.errors import ConfigError, UnknownName
from turngym.seeding import restart


def seated(name: str, table: Table, seed: int) -> Player:
    player = make_player(name, table.game)
    player.begin(table.views[0], restart(np.random.default_rng(0), seed))
    return player


def test_random_plays_every_legal_action_equally_often() -> None:
    table = Table(Spies(7))
    begin_game(table, 0, {"spy": 0})
    player, view = seated("random", table, 1), table.views[0]
    counts = dict.fromkeys(view.legal_actions, 0)
    for _ in range(6000):
        counts[player.act(view)] += 1
    # 6000 draws among 6: mean 1000, standard deviation 29.
    assert len(counts) == 6 and all(abs(count - 1000) < 150 for count in counts.values())


def test_random_depends_on_its_generator_alone() -> None:
    table = Table(Spies(7))
    begin_game(table, 0, {"spy": 0})
    moves = [[seated("random", table, seed).act(table.views[0]) for _ in range(1)] for seed in (1, 1, 2, 3, 4, 5)]
    assert moves[0] == moves[1] and any(move != moves[0] for move in moves)


def test_first_legal_plays_the_first_legal_action() -> None:
    table = Table(Spies(4))
    begin_game(table, 0, {"spy": 1})
    assert seated("first_legal", table, 0).act(table.views[1]) == "remove player_0"


def test_a_games_own_players_come_before_the_generic_ones() -> None:
    game = Secret()
    assert make_player("reader", game).name == "reader" and make_player("honest", game).name == "Honest"
    game.players = {"random": "toy_games:Honest"}  # type: ignore[misc]  # of this one object
    assert make_player("random", game).name == "Honest"
    assert make_player("random", Coins()).name == "random"


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("hones", UnknownName, "no player of secret named 'hones'. Did you mean 'honest'?"),
        ("zzzzzz", UnknownName, "Known: first_legal, honest, random, reader"),
        ("toy_games:Nobody", UnknownName, "toy_games has no 'Nobody'. Known: Honest"),
        ("no_such_module:Player", UnknownName, "no module named 'no_such_module', which"),
        ("toy_games:Secret", ConfigError, "is a class of .*Game, expected a Player: a class of"),
    ],
)
def test_an_unknown_player_is_named_with_the_nearest(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_player(name, Secret())


@pytest.mark.parametrize(
    ("game_id", "options", "error", "message"),
    [
        (
            "turngym/Werwolf-v0",
            {},
            UnknownName,
            "no game named .*Did you mean 'turngym/Werewolf-v0'",
        ),
        ("toy_games:Secrets", {}, UnknownName, "toy_games has no 'Secrets'. Did you mean 'Secret'"),
        ("toy_games:Honest", {}, ConfigError, "is a class of .*Player, expected a Game: a class of"),
        ("toy_games:Secret", {"digitss": 1}, ConfigError, "Secret has no option 'digitss'. Did you mean 'digits'"),
    ],
)
def test_an_unknown_game_or_option_is_named(
    game_id: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_game(game_id, **options)


def test_options_are_divided_between_game_and_table() -> None:
    env = make_aec("toy_games:Coins", num_seats=5, retries=3, invalid_penalty=0.5, render_mode="ansi")
    assert (env.game.num_seats, env.table.retries, env.table.invalid_penalty, env.render_mode) == (5, 3, 0.5, "ansi")


def test_every_game_is_listed_with_its_seat() -> None:
    assert len(GAMES) > 10 and [row["name"] for row in listed_games()] == sorted(GAMES)
    for game_id, spec in GAMES.items():
        assert spec.summary.endswith(".") and spec.summary in specs()[seat_id(game_id)].summary
    assert all(make_game(game_id).name for game_id in games_without_packages())


def test_listing_games_imports_none() -> None:
    program = (
        "import sys, json; from turngym.envs.registration import games; names = list(games()); "
        "print(json.dumps([m for m in sys.modules if m.startswith('turngym.envs.')]))"
    )
    found = json.loads(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
    assert not {name for name in found if name.startswith(("turngym.envs.werewolf.", "turngym.envs.multiagent"))}
    assert not {name for name in found if name.startswith("turngym.envs.tablegames.")}


def test_a_ruleset_hash_changes_with_every_option_and_with_nothing_else() -> None:
    rules = [Coins(), Coins(3), Coins(3, 3), Coins(4), Coins(3, 4), Secret(), Secret(5)]
    hashes = [ruleset_hash(game) for game in rules]
    assert hashes[0] == hashes[1] == hashes[2] and len(set(hashes)) == 5


def test_the_registry_of_players_names_what_it_holds() -> None:
    assert {"random", "first_legal"} <= set(PLAYERS)


class Forgetful(Player):
    """Fails to forget: shows that begin is called for every game, with the generator of the seed and seat."""

    begun: list[tuple[str, float]]

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        self.begun = [*getattr(self, "begun", []), (view.name, float(generator.random()))]

    def act(self, view: SeatView) -> str:
        return "heads"


def test_players_begin_every_game_with_a_generator_of_seed_and_seat() -> None:
    made: list[Forgetful] = []

    def make(game: object) -> Player:
        made.append(Forgetful())
        return made[-1]

    vector = TableVector(lambda: Coins(2, 1), 2, scripted={"learner": make})
    vector.reset([5, 5])
    vector.pending()
    vector.pending()
    one, two, three, four = (player.begun for player in made)
    assert [name for name, _ in one + two] == ["player_0"] * 2 + ["player_1"] * 2
    assert one == three and two == four  # tables with equal seeds
    assert len({draw for _, draw in one + two}) == 4


def test_players_of_single_games_are_listed() -> None:
    found = {row["name"]: row["summary"] for row in listed_players()}
    assert "Werewolf" in found["rule_based"] and {"random", "first_legal", "tit_for_tat"} <= found.keys()
    assert all(each in found["honest"] for each in ("LeducPoker", "Raises with", "Persuasion", "Recommends exactly"))
