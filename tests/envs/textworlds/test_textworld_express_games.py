"""TextWorldExpress's table of games, parameters and folds agrees with the package; gold paths are read well."""

from typing import Any

import pytest
from express import EASY_MAP, easy

from turngym.envs.textworlds.textworld_express.env import TextWorldExpress
from turngym.envs.textworlds.textworld_express.games import (
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
from turngym.errors import ConfigError, UnknownName

__all__ = ["easy"]  # fixture


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
        ({"game": "coins"}, "got 'coins'. Did you mean 'coin'"),
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


def test_the_turns_suffice_for_the_gold_path_unless_told_otherwise() -> None:
    assert [TextWorldExpress(game=game).max_turns for game in ("coin", "cookingworld")] == [50, 150]
    assert TextWorldExpress(game="cookingworld", max_turns=50).settings["max_turns"] == 50


def test_matching_ignores_case_and_spacing_only() -> None:
    legal = ("take clean blue T-shirt", "take coin")
    assert match_action("take  CLEAN blue t-shirt\n", legal) == legal[0]
    assert match_action("take the coin", legal) is None


def test_a_strict_path_is_left_by_any_other_action() -> None:
    assert gold_position(["examine apple"], ["take apple"], may_look=False) is None
    assert gold_position(["examine apple"], ["take apple"], may_look=True) == 0
    assert gold_position(["take apple", "look around"], ["take apple"], may_look=True) == 1
