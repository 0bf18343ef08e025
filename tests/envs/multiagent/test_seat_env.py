"""One seat of a game as a single-agent environment."""

import json
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from kinds import games_without_packages

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.check import check
from turngym.envs.instances import split_of
from turngym.envs.multiagent import TableVector
from turngym.envs.multiagent.records import transcript_text
from turngym.envs.registration import games, seat_id, specs
from turngym.envs.seat import SeatEnv
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, UnknownName

TOYS: dict[str, dict[str, Any]] = {
    "toys/SpeakerSeat-v0": {"game": "toy_games:Secret", "seat": "player_0", "opponents": "reader"},
    "toys/CoinsSeat-v0": {"game": "toy_games:Coins", "retries": 0},
    "toys/SpiesSeat-v0": {"game": "toy_games:Spies", "invalid_penalty": 0.5},
}
for toy_id, options in TOYS.items():
    if toy_id not in gymnasium.registry:
        gymnasium.register(
            toy_id,
            entry_point="turngym.envs.seat:SeatEnv",
            kwargs={"env_id": toy_id, **options},
            order_enforce=False,
            disable_env_checker=True,
        )


@pytest.mark.parametrize("env_id", TOYS)
def test_a_seat_keeps_every_promise_of_an_environment(env_id: str) -> None:
    """Other processes are asked for one of them, as they are for every seat that is registered."""
    assert not check(env_id, in_process=env_id != "toys/SpeakerSeat-v0").findings
    check_env(gymnasium.make(env_id))


def act(env: SeatEnv, number: int) -> str:
    legal = env.view.legal_actions
    return legal[number % len(legal)] if legal else f"word {number}"


def test_every_game_has_its_seat_in_gymnasiums_registry() -> None:
    for game_id in games_without_packages():
        env = gymnasium.make(seat_id(game_id))
        partner = games()[game_id].partner
        expected = {"game": game_id, **({"opponents": partner} if partner else {})}
        assert isinstance(env, SeatEnv) and specs()[seat_id(game_id)].kwargs == expected
        assert env.instructions.strip(), "there before the first reset"


def test_a_given_seat_is_always_ours_and_a_random_one_varies_with_the_seed() -> None:
    given, any_seat = SeatEnv("toy_games:Spies", seat="player_3"), SeatEnv("toy_games:Spies")
    seats = set()
    for seed in range(40):
        given.reset(seed=seed)
        any_seat.reset(seed=seed)
        assert given.seat == "player_3"
        seats.add(any_seat.seat)
        again = any_seat.seat
        any_seat.reset(seed=seed)
        assert any_seat.seat == again
    assert seats == set(given.game.seats)


@pytest.mark.parametrize("seat", ["random", "player_2"])
@pytest.mark.parametrize("role", ["spy", "guest"])
def test_a_role_can_be_asked_for_at_any_seat(seat: str, role: str) -> None:
    env = SeatEnv("toy_games:Spies", seat=seat, role=role)
    for seed in range(10):
        env.reset(seed=seed)
        assert env.view.role == role and seat in ("random", env.seat)


def test_a_role_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(ConfigError, match=r"asked as king: roles of the last one were \[.*'spy'"):
        SeatEnv("toy_games:Spies", role="king").reset(seed=0)


def test_a_game_in_which_the_seat_is_never_asked_is_drawn_anew() -> None:
    """With three seats and no talk, a guest that is removed at night is never asked."""
    env = SeatEnv("toy_games:Spies", role="guest", num_seats=4, talk=False)
    for seed in range(60):
        _, info = env.reset(seed=seed)
        assert info["legal_actions"] and info["success"] == -1


def test_the_reward_is_what_the_seat_earns_until_it_is_asked_again() -> None:
    """The sum over the episode is the table's return, whoever earned it for us and when."""
    for seed in range(30):
        env = SeatEnv("toy_games:Secret", invalid_penalty=0.25)
        env.reset(seed=seed)
        total, terminated, number = 0.0, False, 0
        while not terminated:
            _, reward, terminated, truncated, info = env.step("?" if number == 1 else act(env, number))
            total += reward
            number += 1
            assert not truncated
        assert total == env.table.returns[env._seat]
        assert info["success"] == int(env._seat in env.game.winners()) and env.view.lines[-1].startswith(
            "The digit was"
        )


def test_an_invalid_answer_is_asked_again() -> None:
    env = SeatEnv("toy_games:Secret", seat="player_1")
    env.reset(seed=0)
    observation, reward, terminated, _, info = env.step("seven")
    assert observation == "That is not one of the legal actions.\nWhich digit is it?"
    assert (reward, terminated, info["action_is_valid"]) == (0.0, False, False)
    assert env.step("0")[4]["action_is_valid"] and env.table.actions[1] == (1, "0")


def test_the_same_game_is_played_in_a_vector_of_tables() -> None:
    env = SeatEnv("toy_games:Spies", seat="player_1", opponents="first_legal")
    env.reset(seed=4)
    vector = TableVector(
        "toy_games:Spies", 1, lambda table, seat, role: "us" if seat == 1 else "them", scripted={"them": "first_legal"}
    )
    vector.begin(0, env._seed)
    for number in range(100):
        [request] = vector.pending()
        assert (request.observation, request.anchor) == (env.view.observation, env.anchor())
        text = act(env, number)
        _, reward, terminated, *_ = env.step(text)
        vector.submit([(request.request_id, text)])
        [step] = vector.drain()
        assert (step.reward, step.terminated) == (reward, terminated)
        if terminated:
            break
    assert transcript_text(env.table) == transcript_text(vector.tables[0])


def test_opponents_are_named_for_all_by_seat_or_in_order() -> None:
    for opponents in ("honest", {"player_0": "honest", "player_1": "reader"}, ["honest"]):
        env = SeatEnv("toy_games:Secret", seat="player_1", opponents=opponents, digits=9)
        observation, _ = env.reset(seed=1)
        digit = observation.partition("Your digit is ")[2][0]
        env.step(digit)
        env.step(digit)
        assert env.table.game.winners() == (0, 1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seat": "player_7"}, ConfigError, "has no seat 'player_7'. Did you mean"),
        ({"opponents": "hones"}, UnknownName, "no player of secret named 'hones'. Did you mean 'honest'"),
        ({"opponents": {"player_3": "random"}}, ConfigError, r"must name a player for each of \['player_1'\]"),
        ({"opponents": ["random", "random"]}, ConfigError, "one name for all, a mapping from seat to name, or 1 names"),
        ({"opponents": 3}, ConfigError, "must name a player for each of .*, got 3"),
        ({"opponents": [3]}, ConfigError, r"must name a player for each of .*, got \[3\]"),
        ({"seat": 1}, ConfigError, "must be the name of a seat: player_0, player_1, random; got 1"),
        ({"role": 3}, ConfigError, "must be the name of a role, or empty for any, got 3"),
        ({"digit": 3}, ConfigError, "Secret has no option 'digit'. Did you mean 'digits'"),
        ({"retries": -1}, ConfigError, "retries must be a whole number"),
        ({"split": "rest"}, ConfigError, "has no split 'rest'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SeatEnv("toy_games:Secret", **options)


def test_the_expert_is_the_games_first_player_and_knows_no_more_than_the_seat() -> None:
    env = SeatEnv("toy_games:Secret", seat="player_1", opponents="honest")
    env.reset(seed=0)
    assert env.expert_action() == env.expert_action() == env.view.lines[-1][-2]
    env.resample_hidden()
    assert env.expert_action() == env.view.lines[-1][-2]
    with pytest.raises(ConfigError, match="coins has no player of its own"):
        SeatEnv("toy_games:Coins").expert_action()


def test_splits_share_no_game() -> None:
    for split in ("train", "dev", "test"):
        env = SeatEnv("toy_games:Spies", split=split)
        for seed in range(20):
            env.reset(seed=seed)
            assert split_of(env.instance) == split


def test_hidden_facts_are_swapped_only_where_the_next_text_cannot_let_the_others_act() -> None:
    env = SeatEnv("toy_games:Secret", seat="player_1", retries=1)
    env.reset(seed=0)
    before = env.view.anchor, env.view.observation
    hidden = env.table.game.state()["hidden"]
    assert env.resample_hidden() and env.table.game.state()["hidden"] != hidden
    assert (env.view.anchor, env.view.observation) == before
    env.step("nonsense")
    assert not env.resample_hidden()


def test_a_snapshot_holds_the_players_and_belongs_to_them() -> None:
    env = SeatEnv("toy_games:Secret", seat="player_0", opponents="reader")
    env.reset(seed=0)
    env.step("no digit here")
    content = json.loads(env.snapshot())
    assert content["state"]["hosted"]["players"][1][:2] == ["reader", ["", env.table.actions[-1][1]]]
    content["settings"]["opponents"] = "random"
    other = SeatEnv("toy_games:Secret", seat="player_0", opponents="random")
    content["env_id"] = other.env_id
    with pytest.raises(ConfigError, match=r"with the players \[None, 'reader'\], not with \[None, 'random'\]"):
        other.restore(json.dumps(content).encode())


def test_seats_play_in_our_vectors() -> None:
    vector = make_vec("toys/SpiesSeat-v0", 3)
    _, infos = vector.reset(seed=[1, 1, 2])
    assert infos.rows[0]["anchor"] == infos.rows[1]["anchor"]
    vector.close()


@pytest.mark.parametrize(("wrong", "right"), [("opponent", "opponents"), ("retry", "retries"), ("lifes", "lives")])
def test_an_option_of_the_seat_or_of_the_game_is_suggested(wrong: str, right: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SeatEnv("turngym/Hanabi-v0", env_id="turngym/HanabiSeat-v0", **{wrong: 1})  # type: ignore[arg-type]
    assert str(caught.value) == f"turngym/HanabiSeat-v0 has no option {wrong!r}. Did you mean {right!r}?"
