"""``turngym verify`` on the folder of a tournament, the lock of that folder, and models behind servers."""

import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_servers import Body, Reply, chat_server

from turngym.__main__ import main
from turngym.benchmarks.tournaments.folder import TournamentFolder
from turngym.benchmarks.verification.findings import MEANINGS
from turngym.benchmarks.verification.verify import verify
from turngym.errors import RunFolderExists

KUHN = "turngym/KuhnPoker-v0"
Game = dict[str, Any]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of a tournament of two players."""
    path = tmp_path_factory.mktemp("tournaments") / "kuhn"
    words = ["tournament", KUHN, "--players", "random", "first_legal", "--blocks", "5", "--anchor", "random=1000"]
    assert main([*words, "--out", str(path)]) == 0
    return path


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """Give a copy that may be changed."""
    for file in original.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def games_of(folder: Path) -> list[Game]:
    return [json.loads(line) for line in (folder / "episodes.jsonl").read_text("utf8").splitlines()]


def write_games(folder: Path, games: list[Game]) -> None:
    (folder / "episodes.jsonl").write_text("".join(json.dumps(game) + "\n" for game in games))


def change(folder: Path, name: str, edit: Callable[[Any], Any]) -> None:
    content = json.loads((folder / name).read_text())
    edit(content)
    (folder / name).write_text(json.dumps(content))


def names_of(folder: Path, **options: Any) -> set[str]:
    found = verify(folder, **{"replay": 1.0, **options})
    assert all(finding.name in MEANINGS for finding in found.findings)
    assert found.is_accepted == (found.label != "rejected") == (not found.findings)
    return {finding.name for finding in found.findings}


def test_a_true_tournament_is_accepted_and_replayed(folder: Path) -> None:
    found = verify(folder, replay=0.2)
    assert (found.label, found.episodes, found.replayed) == ("replayed", 20, 20)
    assert verify(folder, replay=0).label == "self-reported"


def test_a_game_whose_id_looks_like_another_one_is_rejected(folder: Path) -> None:
    for game in ("Turngym/KuhnPoker-v0", "turngym:x/KuhnPoker-v0", "turng\u0443m/KuhnPoker-v0"):
        change(folder, "config.json", lambda config: config.update(game=game))  # noqa: B023
        assert "plan" in names_of(folder), game


@pytest.mark.parametrize("game", ["turngym/MatchingPennies-v0", "turngym/Werewolf-v0", "turngym/TicTacToe-v0"])
def test_games_of_other_kinds_are_replayed_too(game: str, tmp_path: Path) -> None:
    words = ["tournament", game, "--players", "random", "first_legal", "--blocks", "2", "--out", str(tmp_path / "t")]
    assert main(words) == 0
    found = verify(tmp_path / "t", replay=1.0)
    assert found.is_accepted and found.replayed == found.episodes, found.findings


def test_the_command_says_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(folder)]) == 0
    assert "is accepted" in capsys.readouterr().out
    write_games(folder, games_of(folder)[1:])
    assert main(["verify", str(folder)]) == 1
    assert "missing-game" in capsys.readouterr().out


def test_more_blocks_of_a_tournament_that_went_on_are_accepted(folder: Path) -> None:
    words = ["tournament", KUHN, "--players", "random", "first_legal", "--blocks", "7", "--anchor", "random=1000"]
    assert main([*words, "--out", str(folder), "--resume"]) == 0
    assert not names_of(folder)


def lose(games: list[Game]) -> None:
    games.pop(3)


def repeat(games: list[Game]) -> None:
    games.append(games[3])


def foreign(games: list[Game]) -> None:
    games.append({**games[3], "match": "99:random,first_legal"})


def other_seed(games: list[Game]) -> None:
    games[3]["seed"] += 1


def other_block(games: list[Game]) -> None:
    games[3]["block_id"] += 1


def swap_seats(games: list[Game]) -> None:
    index = next(i for i, game in enumerate(games) if len(set(game["seat_map"].values())) == 2)
    names = list(games[index]["seat_map"].values())
    games[index]["seat_map"] = dict(zip(games[index]["seat_map"], reversed(names), strict=True))


def other_winner(games: list[Game]) -> None:
    games[3]["winners"] = [seat for seat in games[3]["seat_map"] if seat not in games[3]["winners"]]


def other_returns(games: list[Game]) -> None:
    games[3]["returns"] = {seat: -value for seat, value in games[3]["returns"].items()}


def other_rules(games: list[Game]) -> None:
    games[3]["ruleset_hash"] = "0" * 64


def broken(games: list[Game]) -> None:
    zeros = dict.fromkeys(games[3]["seat_map"], 0.0)
    games[3] |= {"status": "env_error", "fault": "it broke", "winners": [], "metrics": {}}
    games[3] |= {"returns": zeros, "scores": zeros}


@pytest.mark.parametrize(
    ("tamper", "name"),
    [
        (lose, "missing-game"),
        (repeat, "duplicate-game"),
        (foreign, "foreign-game"),
        (other_seed, "game-seed"),
        (other_block, "game-seed"),
        (swap_seats, "seats"),
        (other_winner, "aggregate"),
        (other_returns, "replay-game"),
        (other_rules, "ruleset"),
        (broken, "env-errors"),
    ],
)
def test_games_that_were_changed_are_found(tamper: Callable[[list[Game]], None], name: str, folder: Path) -> None:
    games = games_of(folder)
    tamper(games)
    write_games(folder, games)
    assert name in names_of(folder)


@pytest.mark.parametrize("key", ["winners", "returns", "actions", "transcript_sha256", "scores", "length"])
def test_a_forger_who_fits_the_numbers_fails_at_the_replay(key: str, folder: Path) -> None:
    from turngym.benchmarks.tournaments.results import results

    games = games_of(folder)
    game = games[7]
    if key == "winners":
        game["winners"] = [seat for seat in game["seat_map"] if seat not in game["winners"]]
    elif key in ("returns", "scores"):
        game[key] = {seat: -value for seat, value in game[key].items()}
    elif key == "actions":
        game["actions"] = game["actions"][:-1]
    elif key == "length":
        game["length"] += 1
    else:
        game[key] = "0" * 64
    write_games(folder, games)
    plan = json.loads((folder / "config.json").read_text())
    plan["players"] = {name: plan["players"][name] for name in plan["player_order"]}
    (folder / "results.json").write_text(json.dumps(results(plan, games, anchor="random", anchor_elo=1000.0)))
    assert names_of(folder) == {"replay-game"} and not names_of(folder, replay=0)


def set_rating(results: Any) -> None:
    results["ratings"]["players"]["first_legal"]["elo"]["value"] += 50


def set_interval(results: Any) -> None:
    results["ratings"]["players"]["first_legal"]["log"]["ci_low"] += 1e-6


def set_wins(results: Any) -> None:
    results["win_matrix"][0]["wins"] += 1


def set_share(results: Any) -> None:
    results["players"]["random"]["all"]["win"]["value"] = 0.99


def add_number(results: Any) -> None:
    results["players"]["random"]["iq"] = 140


def drop_number(results: Any) -> None:
    del results["differences"]


@pytest.mark.parametrize("tamper", [set_rating, set_interval, set_wins, set_share, add_number, drop_number])
def test_numbers_that_do_not_follow_from_the_games_are_found(tamper: Callable[[Any], None], folder: Path) -> None:
    change(folder, "results.json", tamper)
    assert names_of(folder) <= {"aggregate", "results"} and names_of(folder)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("results.json", None),
        ("episodes.jsonl", b"{}\n"),
        ("episodes.jsonl", b"[1\n"),
        ("results.json", b"[]"),
        ("episodes.jsonl", b'{"match": NaN}\n'),
    ],
)
def test_damaged_files_are_named(file: str, content: bytes | None, folder: Path) -> None:
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    assert names_of(folder) == {"schema"}


@pytest.mark.parametrize("game", ["os:path", "chat_servers:Reply", "turngym/None-v0"])
def test_a_game_that_is_not_registered_is_never_made(game: str, folder: Path) -> None:
    change(folder, "config.json", lambda plan: plan.update(game=game))
    change(folder, "results.json", lambda results: results.update(env=game))
    found = verify(folder, replay=1.0)
    assert found.label in ("self-reported", "rejected") and found.replayed == 0
    assert "is not registered here" in found.notes[0]


def test_a_plan_that_cannot_be_set_up_is_told(folder: Path) -> None:
    change(folder, "config.json", lambda plan: plan.update(pairing="nobody"))
    assert "plan" in names_of(folder)


def test_a_plan_of_endless_blocks_is_no_endless_work(folder: Path) -> None:
    change(folder, "config.json", lambda plan: plan.update(blocks=10**12))
    assert "missing-game" in names_of(folder)


# One tournament a folder.


def hold(path: str, has_begun: Any, may_end: Any) -> None:
    store = TournamentFolder(Path(path), {"blocks": 1}, resume=False)
    has_begun.set()
    may_end.wait(60)
    store.close()


def test_two_tournaments_cannot_write_one_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    has_begun, may_end = context.Event(), context.Event()
    process = context.Process(target=hold, args=(str(tmp_path / "t"), has_begun, may_end))
    process.start()
    try:
        assert has_begun.wait(60)
        with pytest.raises(RunFolderExists, match="is being written by another tournament"):
            TournamentFolder(tmp_path / "t", {"blocks": 1}, resume=True)
    finally:
        may_end.set()
        process.join()
    TournamentFolder(tmp_path / "t", {"blocks": 1}, resume=True).close()
    assert {file.name for file in (tmp_path / "t").iterdir()} == {"config.json", "episodes.jsonl"}


# Models behind servers.


def passer(body: Body) -> Reply:
    return Reply("Thought: none. <action>pass</action>", usage=(20, 5))


@pytest.mark.parametrize("style", ["plain", "react"])
def test_a_server_plays_with_its_settings_and_tokens_are_counted(style: str, tmp_path: Path) -> None:
    with chat_server(passer) as server:
        words = ["tournament", KUHN, "--players", "random", f"model=openai:model@{server.url}", "--blocks", "2"]
        words += ["--style", style, "--server", "concurrency=2", "--server", "wait=0.001", "--out", str(tmp_path / "t")]
        assert main(words) == 0
        assert server.requests and server.most_at_once <= 2
        results = json.loads((tmp_path / "t" / "results.json").read_text())
    own = [seat for game in games_of(tmp_path / "t") for name, seat in _seats(game) if name == "model"]
    assert sum(seat["tokens_in"] for seat in own) == 20 * len(server.requests)
    assert results["players"]["model"]["usage"]["tokens_out_per_call"] == 5
    assert verify(tmp_path / "t", replay=1.0).is_accepted


def _seats(game: Game) -> list[tuple[str, Game]]:
    return [(game["seat_map"][seat], numbers) for seat, numbers in game["seats"].items()]


def test_settings_that_make_no_sense_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    players = ["tournament", KUHN, "--players", "random", "openai:model@http://127.0.0.1:9/v1"]
    assert main([*players, "--server", "concurency=2"]) == 2
    assert "concurrency" in capsys.readouterr().err
    assert main([*players, "--style", "reflexion"]) == 2
    assert "learns from one try" in capsys.readouterr().err
