"""TextWorldExpress, played for real in Java processes that several games share."""

import gc
import json
import os
import random
import shutil
import signal
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.textworlds.java import JavaGone, close_java
from turngym.envs.textworlds.textworld_express import UNKNOWN_ACTION, TextWorldExpress
from turngym.envs.textworlds.textworld_express_games import (
    FIRST_SEED,
    GAMES,
    TASKS_PER_SPLIT,
    UNWINNABLE,
    gold_position,
    match_action,
    parse_reply,
    read_params,
    task_numbers,
)
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, EpisodeOver, SnapshotUnsupported, UnknownName

pytest.importorskip("textworld_express", reason="needs the optional package textworld-express")
if shutil.which("java") is None:
    pytest.skip("needs a Java runtime on the PATH", allow_module_level=True)

EASY_MAP = "numLocations=3,maxDistanceApart=2,maxDistractorItemsPerLocation=0,includeDoors=0"
Pair = tuple[TextWorldExpress, TextWorldExpress]


@pytest.fixture(scope="module", params=sorted(GAMES))
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Two environments of one game."""
    first, second = (TextWorldExpress(game=request.param, split="test") for _ in range(2))
    yield first, second
    first.close()
    second.close()


@pytest.fixture(scope="module")
def easy() -> Iterator[TextWorldExpress]:
    env = TextWorldExpress(game="mapreader", params=EASY_MAP, max_turns=12)
    yield env
    env.close()


def play(env: TextWorldExpress, seed: int, num_turns: int = 12) -> list[Any]:
    """Return all that an episode of random legal actions shows, some of them ill-formed."""
    choice = random.Random(seed)
    seen: list[Any] = [env.reset(seed=seed)]
    for turn in range(num_turns):
        action = choice.choice(seen[-1][-1]["legal_actions"])
        seen.append((action, *env.step("gibberish" if turn == 3 else action)))
        if seen[-1][3] or seen[-1][4]:
            break
    return seen


def as_bytes(seen: list[Any]) -> bytes:
    return json.dumps(seen).encode()


def win(env: TextWorldExpress) -> list[float]:
    """Follow the gold path to the end; return the rewards."""
    rewards = []
    while env._running:
        _, reward, _, _, info = env.step(env.expert_action())
        assert info["action_is_valid"]
        rewards.append(reward)
    return rewards


def test_the_gold_path_wins_every_game(pair: Pair) -> None:
    env = pair[0]
    for task in (0, 1, "test/999"):
        env.reset(seed=0, options={"task": task})
        rewards = win(env)
        _, info = env.restore(env.snapshot())
        assert sum(rewards) == pytest.approx(1.0)
        assert (info["success"], info["score"], info["progress"]) == (1, 1.0, 1.0)
        assert info["legal_actions"] == ()


def test_equal_seeds_give_equal_bytes_in_two_environments_with_different_pasts(pair: Pair) -> None:
    first, second = pair
    play(second, seed=77)
    second.reset(seed=78)
    second.expert_action()
    for seed in (1, 2):
        assert as_bytes(play(first, seed)) == as_bytes(play(second, seed))
    assert as_bytes(play(first, 1)) != as_bytes(play(first, 2))


def test_the_gold_path_is_a_function_of_the_task(pair: Pair) -> None:
    """The package walks at random, without a seed, in two of its games."""
    paths = []
    for env in pair:
        env.reset(seed=0, options={"task": 5})
        paths.append((env.expert_action(), env._gold))
    assert paths[0] == paths[1]


def test_a_branch_from_a_snapshot_equals_the_original_continuation(pair: Pair) -> None:
    first, second = pair
    first.reset(seed=4)
    first.step("nonsense")
    for _ in range(3):
        first.step(first.expert_action())
    saved = first.snapshot()
    assert second.restore(saved) == first.restore(saved)
    while first._running:
        action = first.expert_action()
        assert second.expert_action() == action
        assert first.step(action) == second.step(action)
    assert first.reset() == second.reset(), "the generator must be part of the snapshot"


def test_text_that_is_no_action_changes_nothing(pair: Pair) -> None:
    env = pair[0]
    _, before = env.reset(seed=3)
    for text in ("", "   ", "\ud800", "take\x00", "漢字🙂\n", "help", "move " * 5_000, "look around; inventory"):
        observation, reward, terminated, truncated, info = env.step(text)
        assert (observation, reward, terminated, truncated) == (UNKNOWN_ACTION, 0.0, False, False)
        assert info == {**before, "action_is_valid": False}


def test_legal_actions_are_sorted_and_known_to_the_instructions(pair: Pair) -> None:
    env = pair[0]
    _, info = env.reset(seed=6)
    verbs = {form.split()[0] for form in GAMES[env.game].actions}
    while env._running:
        legal = info["legal_actions"]
        assert list(legal) == sorted(set(legal))
        if env.game != "simonsays":  # its verbs are as many as Simon's whims
            assert {action.split()[0] for action in legal} <= verbs
        info = env.step(env.expert_action())[-1]
    assert all(f"- {form}" in env.instructions for form in GAMES[env.game].actions)


def test_the_anchor_says_only_what_looking_shows_and_counts_no_turns(pair: Pair) -> None:
    env = pair[0]
    _, info = env.reset(seed=8)
    if env.game == "simonsays":
        pytest.skip("simonsays has no place to look at: its anchor is what Simon said")
    for _ in range(4):
        looked, *_, later = env.step("look around")
        carried = env.step("inventory")[0]
        assert later["anchor"] == info["anchor"]
        assert later["anchor"].startswith("\n\n".join([env._reply.task, looked, carried]))
        rest = later["anchor"].removeprefix("\n\n".join([env._reply.task, looked, carried]))
        assert rest == "".join(f"\n\n{action}: {text}" for action, text in sorted(env._notes.items()))
        info = env.step(env.expert_action())[-1]


def test_the_coin_can_be_taken_only_where_it_is_seen() -> None:
    env = TextWorldExpress(game="coin", params={"numLocations": 3, "includeDoors": 0})
    for task in range(6):
        _, info = env.reset(options={"task": task})
        while env._running:
            assert ("take coin" in info["legal_actions"]) == ("a coin" in env._reply.look)
            info = env.step(env.expert_action())[-1]
    env.close()


def test_a_lost_game_ends_with_score_minus_one() -> None:
    env = TextWorldExpress(game="simonsays", params="numDistractors=2")
    observation, info = env.reset(seed=1)
    first = env.expert_action()
    assert first in observation
    info = env.step(first)[-1]
    wrong = next(action for action in info["legal_actions"] if action != env.expert_action())
    _, reward, terminated, truncated, info = env.step(wrong)
    assert (terminated, truncated, info["success"], info["score"], info["progress"]) == (True, False, 0, -1.0, 0.0)
    assert reward == pytest.approx(-1.2)
    with pytest.raises(EpisodeOver, match="call reset"):
        env.step(first)
    with pytest.raises(EpisodeOver, match="call reset"):
        env.expert_action()
    env.close()


def test_the_turn_limit_truncates(easy: TextWorldExpress) -> None:
    easy.reset(seed=0)
    for turn in range(12):
        *_, terminated, truncated, info = easy.step("inventory")
        assert (terminated, truncated) == (False, turn == 11)
    assert info["success"] == 0


def test_the_first_observation_states_the_task_and_later_ones_only_what_is_new(easy: TextWorldExpress) -> None:
    first, _ = easy.reset(seed=0)
    assert first.startswith("Your task is to take the coin")
    assert "You are in the" in first
    assert easy.step("INVENTORY ")[0] == "Inventory:\n  a map"


def test_the_expert_follows_after_a_look_and_says_so_when_the_path_is_left(easy: TextWorldExpress) -> None:
    _, info = easy.reset(options={"task": "train/0"})
    expected = easy.expert_action()
    easy.step("inventory")
    assert easy.expert_action() == expected
    easy.step(next(action for action in info["legal_actions"] if action.startswith("put map")))
    with pytest.raises(ConfigError, match="has left the gold path"):
        easy.expert_action()


def test_tasks_are_chosen_by_name_number_or_seed(easy: TextWorldExpress) -> None:
    assert easy.tasks()[7] == "train/7"
    by_name = easy.reset(options={"task": "train/7"})
    assert by_name == easy.reset(options={"task": 7})
    drawn = {easy.reset(seed=seed)[0] for seed in range(20)}
    assert len(drawn) > 10
    with pytest.raises(UnknownName, match="no task named 'test/7'"):
        easy.reset(options={"task": "test/7"})
    with pytest.raises(ConfigError, match=r"must lie in \[0, 999\], got 1000"):
        easy.reset(options={"task": 1000})


def test_folds_are_the_packages_own_and_disjoint(easy: TextWorldExpress) -> None:
    easy.reset(seed=0)
    folds = {}
    for split, method in (("train", "getSeedsTrain"), ("dev", "getSeedsDev"), ("test", "getSeedsTest")):
        folds[split] = set(easy._ask(method))
        assert folds[split] == set(range(FIRST_SEED[split], FIRST_SEED[split] + TASKS_PER_SPLIT))
    assert sum(map(len, folds.values())) == len(set.union(*folds.values()))


def test_splits_of_a_small_setting_show_no_common_world() -> None:
    """Three rooms and their names make enough worlds; with two rooms, folds do overlap."""
    looks = {}
    for split in ("train", "dev", "test"):
        env = TextWorldExpress(game="mapreader", params=EASY_MAP, split=split)
        looks[split] = {env.reset(options={"task": task})[0] + env.step("read map")[0] for task in range(200)}
        env.close()
    assert not looks["train"] & looks["test"]
    assert not looks["train"] & looks["dev"]
    assert not looks["dev"] & looks["test"]


def test_exactly_the_listed_tasks_cannot_be_won() -> None:
    """The package gives some dev tasks two cucumbers, of which `take cucumber` takes the wrong one."""
    unwinnable = UNWINNABLE["peckingorder", "dev"]
    env = TextWorldExpress(game="peckingorder", split="dev")
    env.reset(seed=0)
    lost = set()
    for number in range(TASKS_PER_SPLIT):
        env._ask("generateNewGameJSON", FIRST_SEED["dev"] + number, "dev", True)
        gold = list(env._ask("getGoldActionSequence"))
        replies = (parse_reply(env._ask("stepJSON", action), "") for action in gold)
        if any(reply.is_failure for reply in replies):
            lost.add(number)
    env.close()
    assert lost == unwinnable
    assert set(task_numbers("peckingorder", "dev")) == set(range(TASKS_PER_SPLIT)) - unwinnable
    assert "dev/22" not in env.tasks()


def test_the_table_of_parameters_agrees_with_the_package(easy: TextWorldExpress) -> None:
    easy.reset(seed=0)
    for game, (parameters, *_) in GAMES.items():
        answer = easy._ask("load", game, "nonsense=1")
        known = answer.partition("Known properties: ")[2].strip(" .").removesuffix("None").split(", ")
        assert set(filter(None, known)) == set(parameters)
        for name, (low, high) in parameters.items():
            if (low, high) == (0, 1):
                continue  # the package takes any integer for a flag
            assert not easy._ask("load", game, f"{name}={low}") + easy._ask("load", game, f"{name}={high}")
            assert "specified value" in easy._ask("load", game, f"{name}={-1}")
            if name != "gameLength":  # the one without an upper limit there
                assert "specified value" in easy._ask("load", game, f"{name}={high + 1}")
    easy.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"game": "coins"}, "no game named 'coins'. Did you mean 'coin'"),
        ({"params": {"numLocation": 3}}, "no parameter 'numLocation'. Did you mean 'numLocations'"),
        ({"params": "numLocations=12"}, r"numLocations of the game 'coin' must be an integer in \[1, 11\], got '12'"),
        ({"params": "numLocations"}, "must be an integer"),
        ({"params": {"includeDoors": 2}}, r"in \[0, 1\], got 2"),
        ({"game": "sorting", "params": "numLocations=2"}, "It has none"),
        ({"split": "validation"}, "no split 'validation'"),
        ({"max_turns": 0}, "max_turns"),
        ({"render_mode": "rgb_array"}, "cannot render"),
    ],
)
def test_wrong_options_are_answered_with_the_way_out(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownName), match=message):
        TextWorldExpress(**options)


def test_parameters_have_one_canonical_form() -> None:
    mapping = TextWorldExpress(params={"numLocations": 3, "includeDoors": False})
    text = TextWorldExpress(params=" numLocations=3, includeDoors=0 ")
    assert mapping.settings == text.settings
    assert mapping.params == "includeDoors=0,numLocations=3"
    assert read_params("coin", None) == read_params("coin", "") == ""


def test_an_impossible_world_is_a_configuration_error() -> None:
    env = TextWorldExpress(game="mapreader", params="numLocations=2,maxDistanceApart=8")
    with pytest.raises(ConfigError, match=r"cannot make task .* smaller maxDistanceApart"):
        for task in range(20):
            env.reset(options={"task": task})
    env.close()


def test_a_snapshot_that_replays_differently_is_refused(easy: TextWorldExpress) -> None:
    easy.reset(seed=2)
    easy.step("task")
    content = json.loads(easy.snapshot())
    content["state"]["last"] += " And a dragon."
    with pytest.raises(SnapshotUnsupported, match="led elsewhere"):
        easy.restore(json.dumps(content).encode())
    other = TextWorldExpress(game="mapreader", params=EASY_MAP, max_turns=13)
    with pytest.raises(ConfigError, match="belongs to"):
        other.restore(easy.snapshot())


def test_a_killed_process_is_a_clear_error_and_reset_recovers() -> None:
    env = TextWorldExpress(game="simonsays")
    before = env.reset(seed=5)
    assert env._java is not None
    os.kill(env._java.process.pid, signal.SIGKILL)
    with pytest.raises(JavaGone, match=r"has ended with exit status -9: the episode is lost; reset\(\) starts"):
        env.step(before[1]["legal_actions"][0])
    with pytest.raises(JavaGone):
        env.step(before[1]["legal_actions"][0])
    assert env.reset(seed=5) == before
    env.close()
    with pytest.raises(JavaGone, match="closed in mid-episode"):
        env.step(before[1]["legal_actions"][0])
    env.close()


def test_one_process_serves_all_resets_and_nothing_is_left_after_close() -> None:
    close_java()
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    env = gymnasium.make("turngym/TextWorldExpress-v0", game="simonsays")
    pids = set()
    for seed in range(3):
        env.reset(seed=seed)
        java = env.get_wrapper_attr("_java")
        pids.add(java.process.pid)
    assert len(pids) == 1
    env.close()
    close_java()
    with pytest.raises(ProcessLookupError):
        os.kill(pids.pop(), 0)
    if descriptors:
        assert len(os.listdir("/proc/self/fd")) == descriptors


def test_games_share_one_process_save_where_their_tasks_share_objects() -> None:
    """In sorting and arithmetic, two games of one task would put the same objects into both boxes."""
    for game in GAMES:
        envs = [TextWorldExpress(game=game, split="test") for _ in range(2)]
        for env in envs:
            env.reset(options={"task": 3})
        while envs[0]._running:
            action = envs[0].expert_action()
            assert envs[0].step(action) == envs[1].step(action)
        first, second = (env._java for env in envs)
        assert first is not None and second is not None
        assert (first.process is second.process) == (game not in ("arithmetic", "sorting"))
        for env in envs:
            env.close()


def test_threads_that_share_a_process_see_what_one_thread_sees() -> None:
    seen = []
    for backend in ("sync", "thread"):
        vector = make_vec("turngym/TextWorldExpress-v0", 6, backend=backend, game="cookingworld")
        observations, infos = vector.reset(seed=3)
        shown = [list(observations)]
        for turn in range(20):
            legal = [row["legal_actions"] for row in infos.rows]
            observations, *_, infos = vector.step(tuple(actions[turn % len(actions)] for actions in legal))
            shown.append([list(observations), [row["anchor"] for row in infos.rows]])
        seen.append(shown)
        vector.close()
    assert seen[0] == seen[1]


def test_the_turns_suffice_for_the_gold_path_unless_told_otherwise() -> None:
    assert [TextWorldExpress(game=game).max_turns for game in ("coin", "cookingworld")] == [50, 150]
    assert TextWorldExpress(game="cookingworld", max_turns=50).settings["max_turns"] == 50


def test_gymnasium_accepts_it() -> None:
    env = gymnasium.make("turngym/TextWorldExpress-v0", game="mapreader", params=EASY_MAP, render_mode="ansi")
    assert isinstance(env, TextWorldExpress)
    check_env(env, skip_render_check=True)
    env.reset(seed=0)
    assert "Your task is" in str(env.render())
    env.close()


def test_the_gold_path_holds_only_actions_that_do_something() -> None:
    """The package's own path through a kitchen opens again what is open."""
    env = TextWorldExpress(game="cookingworld", max_turns=150)
    env.reset(options={"task": "train/850"})
    given = env._given_gold()
    env.reset(options={"task": "train/850"})
    rewards = win(env)
    assert env._success == 1
    assert len(rewards) < len(given)
    env.close()


def test_matching_ignores_case_and_spacing_only() -> None:
    legal = ("take clean blue T-shirt", "take coin")
    assert match_action("take  CLEAN blue t-shirt\n", legal) == legal[0]
    assert match_action("take the coin", legal) is None


def test_a_strict_path_is_left_by_any_other_action() -> None:
    assert gold_position(["examine apple"], ["take apple"], may_look=False) is None
    assert gold_position(["examine apple"], ["take apple"], may_look=True) == 0
    assert gold_position(["take apple", "look around"], ["take apple"], may_look=True) == 1
