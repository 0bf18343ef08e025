"""Golden transcripts of the games between two seats: one game of each as text, replayed byte for byte.

`python tests/envs/multiagent/test_golden_tables.py` records the ones that
are missing; delete a file to record it again, and raise the version of a game whose transcript changes.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from turngym.envs import beergame, delegation, economies, hanabi, socialgames, tablegames, wordgames
from turngym.envs.multiagent import Table, make_game, make_player
from turngym.envs.transcript import plain_json, reset_text
from turngym.seeding import stream, stream_seed

GOLDEN = Path(__file__).parents[2] / "golden" / "tables"
IDS = sorted(
    {
        **beergame.SPECS,
        **economies.SPECS,
        **wordgames.SPECS,
        **delegation.SPECS,
        **tablegames.SPECS,
        **hanabi.SPECS,
        **socialgames.SPECS,
        "turngym/Avalon-v0": None,
        "turngym/AvalonSilent-v0": None,
        "turngym/PathFindingEasy-v0": None,
    }
)
FORMAT = "turngym table transcript 1"
SEED = 11
HOSTILE = 'Well\n<|im_end|> 漢 🙂 {"a": [1'

Answerer = Callable[[Table, int], str]


def golden_file(game_id: str) -> Path:
    return GOLDEN / f"{game_id.removeprefix('turngym/')}.txt"


def transcript(game_id: str, seed: int, answer: Answerer) -> str:
    """Play a game and return what every asked seat saw, wrote and got, then every line with its readers."""
    table = Table(make_game(game_id))
    table.reset(np.random.default_rng(stream_seed("golden", seed)))
    settings = json.loads(json.dumps(table.game.settings))
    header = {"format": FORMAT, "game": game_id, "settings": settings, "seed": seed}
    everyone = table.game.everyone
    parts = [json.dumps(header, sort_keys=True), *(f"instructions {s}: {seat_rules(table, s)}" for s in everyone)]
    while table.pending:
        seat = table.pending[0]
        view = table.views[seat]
        parts.append(f"\nasked: {view.name} {view.phase}".rstrip())
        parts.append(reset_text(view.observation, table.info(seat)).removeprefix("reset\n").rstrip("\n"))
        text = answer(table, seat)
        given = table.answer(seat, text)
        parts.append(f"answer: {json.dumps(text)}")
        parts.append(f"taken: {json.dumps(given.action)} {given.is_valid} {json.dumps(given.reason)}")
        parts.append(f"rewards: {list(given.rewards)!r}")
    parts.append("\nover")
    parts += [f"seat {seat}: {plain_json(table.info(seat))}" for seat in everyone]
    parts += [f"line {list(line.to)}: {json.dumps(line.text)}" for line in table.log]
    parts += [f"metrics: {plain_json(table.game.metrics())}", f"returns: {table.returns!r}"]
    parts.append(f"winners: {list(table.game.winners())}")
    return "\n".join(parts) + "\n"


def seat_rules(table: Table, seat: int) -> str:
    return json.dumps(table.instructions(seat))


def replay(text: str) -> str:
    """Play the answers of a transcript again."""
    lines = text.split("\n")
    header = json.loads(lines[0])
    answers = iter([json.loads(line.removeprefix("answer: ")) for line in lines if line.startswith("answer: ")])
    return transcript(header["game"], header["seed"], lambda table, seat: next(answers))


def record(game_id: str) -> str:
    """The game's first player against random play, with an answer that cannot be read and some talk."""
    game = make_game(game_id)
    names = [next(iter(game.players)), "random"] * game.num_seats
    players = [make_player(name, game) for name in names[: game.num_seats]]
    count = 0

    def answer(table: Table, seat: int) -> str:
        nonlocal count
        if not count:
            for number, player in enumerate(players):
                player.begin(table.views[number], stream("golden player", number))
        count += 1
        if count == 1:
            return HOSTILE
        if not table.views[seat].legal_actions:
            return f"Number {count}: [I] do not lie.\nplayer_1 says so."
        return players[seat].act(table.views[seat])

    return transcript(game_id, SEED, answer)


def test_every_game_has_a_golden_transcript() -> None:
    for game_id in IDS:
        assert golden_file(game_id).exists(), f"run python {Path(__file__).name} to record {golden_file(game_id).name}"


def test_no_golden_transcript_is_left_of_a_game_that_is_gone() -> None:
    assert {path.name for path in GOLDEN.glob("*.txt")} == {golden_file(game_id).name for game_id in IDS}


@pytest.mark.parametrize("game_id", IDS)
def test_golden_transcript_replays_to_the_same_bytes(game_id: str) -> None:
    text = golden_file(game_id).read_bytes().decode("utf8")
    assert replay(text) == text


def test_golden_transcript_was_made_with_the_options_of_its_id() -> None:
    """A changed default changes what a score means, so it must show up here."""
    for game_id in IDS:
        header = json.loads(golden_file(game_id).read_text("utf8").split("\n")[0])
        assert header["game"] == game_id and header["format"] == FORMAT
        assert header["settings"] == json.loads(json.dumps(make_game(game_id).settings))


def test_a_changed_line_is_noticed() -> None:
    """Negative oracle: the comparison must see a change of reward, text or result."""
    for change in ["rewards: ", "| ", "progress: ", "line ", "winners: ", "metrics: "]:
        for game_id in IDS:
            lines = golden_file(game_id).read_text("utf8").split("\n")
            index = next(index for index, line in enumerate(lines) if line.startswith(change))
            lines[index] += "1"
            changed = "\n".join(lines)
            assert replay(changed) != changed


def test_another_seed_gives_another_game_where_chance_deals() -> None:
    for game_id in ("turngym/KuhnPokerMatch-v0", "turngym/SimpleNegotiation-v0"):
        texts = [transcript(game_id, seed, lambda table, seat: "pass") for seed in (1, 2)]
        assert texts[0].split("\n")[1:] != texts[1].split("\n")[1:]


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for game_id in IDS:
        if not golden_file(game_id).exists():
            golden_file(game_id).write_bytes(record(game_id).encode())
