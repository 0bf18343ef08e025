"""Progress labels of recorded episodes, of any environment, and the wrapper that tells them while one is played."""

import json
import math
import random
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from reward_games import line_episodes, walk

from turngym.__main__ import main
from turngym.envs.webshop.env import WebShop
from turngym.errors import ConfigError
from turngym.trainers.reward_models.base.labels import find_recipes, label_progress, with_progress
from turngym.trainers.reward_models.base.recordings import read_trajectories
from turngym.wrappers import wrap
from turngym.wrappers.rewards.recipes import Recipe, RecipeBook

SHOP = "turngym/WebShop-v0"
HEAD = "'format': 'turngym recipes 1'"
FEW = ["--option", "products=60"]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings of the shop by oracle and random player, and labels for them."""
    folder = tmp_path_factory.mktemp("labelled")
    for agent in ("expert", "random"):
        words = ["eval", SHOP, "--agent", agent, "--episodes", "8", "--split", "train", "--json", *FEW]
        assert main([*words, "--out", str(folder / agent)]) == 0
    assert main(["label-progress", str(folder / "expert"), str(folder / "random"), "-o", str(folder / "out")]) == 0
    return folder


def shop(path: Path, **options: Any) -> gymnasium.Env[Any, Any]:
    env = gymnasium.make(SHOP, products=60, **options)
    return wrap(env, f"recipe_progress:path={json.dumps(str(path / 'out' / 'recipes.json'))}")


def expert(env: gymnasium.Env[Any, Any]) -> str:
    return str(env.get_wrapper_attr("expert_action")())


def test_labels_of_the_shop_s_oracle_rise_to_1_and_those_of_others_stay_below(labelled: Path) -> None:
    episodes = read_trajectories(labelled / "out" / "labelled.jsonl")
    assert len(episodes) == 16 and sum(each.success == 1 for each in episodes) >= 8
    for each in episodes:
        labels = [*(turn.progress for turn in each.turns), each.progress]
        assert labels[0] == 0.0 and labels == sorted(labels)
        assert (labels[-1] == 1.0) == (each.success == 1)
        if each.success == 1:  # the recipe of one oracle is its episode: every step is a key step
            assert labels == pytest.approx([k / len(each.turns) for k in range(len(each.turns) + 1)])
    failed = [each.progress for each in episodes if each.success != 1]
    assert failed and all(0 <= progress < 1 for progress in failed) and any(failed)


def test_the_wrapper_tells_the_labels_while_the_episode_is_played(labelled: Path) -> None:
    env, told = shop(labelled), {}
    for each in read_trajectories(labelled / "out" / "labelled.jsonl"):
        _, info = env.reset(seed=each.spec.seed)
        if env.get_wrapper_attr("instance_hash") != each.instance:
            continue
        seen = [info["progress"]]
        for turn in each.turns:
            *_, info = env.step(turn.action)
            seen.append(info["progress"])
        wanted = [*(turn.progress for turn in each.turns), each.progress]
        assert seen[-1] == pytest.approx(wanted[-1]) and seen[0] == 0.0
        most = max(len(recipe) for recipe in env.state["recipes"])  # type: ignore[attr-defined]
        assert seen[:-1] == pytest.approx([min(value, most / (most + 1)) for value in wanted[:-1]])
        told[each.instance] = seen
    assert len(told) >= 6


def test_recipes_of_all_tasks_together_are_what_shopping_has_in_common(labelled: Path, tmp_path: Path) -> None:
    words = [str(labelled / "expert"), "-o", str(tmp_path / "out"), "--scope", "environment", "--similarity", "0.3"]
    assert main(["label-progress", *words]) == 0
    book = RecipeBook.read(tmp_path / "out" / "recipes.json")
    assert list(book.known) == [SHOP] and book.scope == "environment"
    for recipe in book.known[SHOP]:
        assert recipe.steps[0] == "search[{goal}]" and recipe.steps[-1] == "click[buy now]"
    env = shop(tmp_path, split="test")  # tasks that nobody has played
    for seed in range(3):
        _, info = env.reset(seed=seed)
        assert info["progress"] == 0.0
        progress = []
        while info["success"] < 0:
            *_, info = env.step(expert(env))
            progress.append(info["progress"])
        assert progress == sorted(progress) and progress[-1] == 1.0 and 0 < progress[0] < 1


def test_a_task_without_recipe_keeps_the_progress_of_its_environment(labelled: Path) -> None:
    plain, env = WebShop(products=60, split="test"), shop(labelled, split="test")
    for seed in range(3):
        infos = [each.reset(seed=seed)[1] for each in (plain, env)]
        while infos[0]["success"] < 0:
            assert infos[0]["progress"] == infos[1]["progress"]
            action = plain.expert_action()
            infos = [each.step(action)[4] for each in (plain, env)]
    assert infos[1]["progress"] == 1.0


def test_a_branch_goes_on_with_the_progress_that_was_made(labelled: Path) -> None:
    env, other, draw = shop(labelled), shop(labelled), random.Random(0)
    seed = next(
        each.spec.seed
        for each in read_trajectories(labelled / "expert")
        if env.reset(seed=each.spec.seed)[1]["progress"] == 0 and env.state["recipes"]  # type: ignore[attr-defined]
    )
    _, info = env.reset(seed=seed)
    env.step(expert(env))
    saved = env.get_wrapper_attr("snapshot")()
    actions = [draw.choice(info["legal_actions"]), "nonsense", expert(env)]
    first = [env.step(action) for action in actions]
    assert 0 < other.get_wrapper_attr("restore")(saved)[1]["progress"] < 1
    assert [other.step(action) for action in actions] == first


def test_worked_labels_of_two_routes() -> None:
    solved = [walk(actions, 1) for actions in ("rrr", "rlrrr", "lll", "lxll")]
    book = find_recipes(solved, similarity=0.5)
    assert book.known == {"line task": [Recipe(("l", "l", "l"), 2), Recipe(("r", "r", "r"), 2)]}
    failed, foreign = walk("rxr"), walk("rrr", instance="another")
    assert label_progress([failed, foreign, solved[1]], book) == [
        pytest.approx([1 / 3, 1 / 3, 2 / 3]),
        None,
        pytest.approx([1 / 3, 1 / 3, 2 / 3, 1, 1]),
    ]
    assert [turn.progress for turn in with_progress(failed, [0.1, 0.2, 0.3]).turns] == [0.0, 0.1, 0.2]
    assert with_progress(failed, [0.1, 0.2, 0.3]).progress == 0.3
    assert math.isnan(with_progress(foreign, None).progress)


def test_a_broken_episode_makes_no_recipe() -> None:
    assert not find_recipes([walk("rrr", 1, fault="the page crashed")]).known
    assert len(find_recipes(line_episodes(), match="state", scope="environment").known["line"]) >= 1


def test_recordings_without_an_instance_are_told_by_what_was_seen_first(tmp_path: Path) -> None:
    env = wrap(gymnasium.make("turngym/TowerOfHanoi-v0", discs=2), f"record:folder={tmp_path / 'played'}")
    _, info = env.reset(seed=0)
    while info["success"] < 0:
        *_, info = env.step(expert(env))
    env.close()
    assert main(["label-progress", str(tmp_path / "played"), "-o", str(tmp_path / "out"), "--match", "state"]) == 0
    again = wrap(
        gymnasium.make("turngym/TowerOfHanoi-v0", discs=2), f"recipe_progress:path={tmp_path / 'out' / 'recipes.json'}"
    )
    _, info = again.reset(seed=0)
    told = [info["progress"]]
    while info["success"] < 0:
        *_, info = again.step(expert(again))
        told.append(info["progress"])
    assert told == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_what_was_labelled_can_be_fitted(labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fit-reward", str(labelled / "out" / "labelled.jsonl"), "--model", "progrm", "-o", str(tmp_path / "fit")]
    options = ["--option", "labels=environment", "--option", "epochs=2", "--option", "dimensions=256"]
    assert main([*words, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["episodes"] == 16 and found["left_out"] == 0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        f"{{{HEAD}, 'match': 'colour', 'scope': 'task', 'recipes': {{}}}}",
        f"{{{HEAD}, 'match': 'action', 'scope': 'task', 'recipes': {{'a': [{{'steps': [], 'support': 1}}]}}}}",
        f"{{{HEAD}, 'match': 'action', 'scope': 'task', 'recipes': {{'a': [{{'steps': [1], 'support': 1}}]}}}}",
        f"{{{HEAD}, 'match': 'action', 'scope': 'task', 'recipes': [1]}}",
    ],
)
def test_a_file_without_recipes_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "recipes.json").write_text(content.replace("'", '"'))
    with pytest.raises(ConfigError, match="holds no recipes"):
        RecipeBook.read(tmp_path / "recipes.json")
    with pytest.raises(ConfigError, match="label-progress"):
        wrap(gymnasium.make("turngym/TowerOfHanoi-v0"), f"recipe_progress:path={tmp_path / 'nothing.json'}")


def test_what_cannot_be_labelled_is_told(labelled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nobody = tmp_path / "nobody.jsonl"
    record = {"env": "x", "turns": [], "success": 0, "final_observation": ""}
    nobody.write_text(json.dumps(record) + "\n")
    for words, message in (
        ([str(nobody), "-o", str(tmp_path / "a")], "none of the 1 episodes solved"),
        ([str(labelled / "expert"), "-o", str(labelled)], "exists already"),
        ([str(labelled / "expert"), "-o", str(tmp_path / "b"), "--similarity", "0"], r"similarity in (0, 1]"),
        (["-o", str(tmp_path / "c")], "needs a folder"),
    ):
        assert main(["label-progress", *words]) != 0
        assert message in capsys.readouterr().err
