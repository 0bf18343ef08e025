"""Rewards for captions by labels that arrive while playing: counts, files, faults, snapshots, and training."""

import gc
import json
import threading
import weakref
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from chat_servers import QUICK, Body, Reply, chat_server
from small import small_model

from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, UnknownName
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.wrappers import wrapping
from turngym.wrappers.rewards import caption_labels
from turngym.wrappers.rewards.caption_labels import LONGEST, Labeller, Labels, shared_labels
from turngym.wrappers.rewards.caption_reward import CaptionReward

SCRIPT = """
LABELS = {"higher": 1.0, "lower": 0.5}


def label(captions):
    return [LABELS.get(caption, 0.0) for caption in captions]


class Always:
    def __init__(self, value):
        self.value = value

    def __call__(self, captions):
        return [self.value for _ in captions]
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "labels.py"
    path.write_text(SCRIPT)
    return f"{path}:label"


def made(**options: Any) -> CaptionReward:
    env = CaptionReward(gymnasium.make("turngym/GuessTheNumber-v0"), **options)
    env.reset(seed=1)  # the number is above 2
    return env


def rewards(env: CaptionReward, *guesses: str) -> list[float]:
    return [env.step(guess)[1] for guess in guesses]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 1 / 8, 0.5, 1 / 27]),
        ({"power": 0}, [1, 1, 0.5, 1]),
        ({"power": None, "scale": 2}, [2, 0, 1, 0]),
        ({"pattern": "^h(.*)er"}, [0, 0, 0, 0]),
        ({"pattern": "^low.*$"}, [0, 0, 0.5, 0]),
    ],
)
def test_a_label_counts_less_each_time_its_caption_is_seen(
    options: dict[str, Any], expected: list[float], script: str
) -> None:
    with closing(made(labeller=script, wait=True, **options)) as env:
        for _ in range(2):
            assert rewards(env, "2", "2", "99", "2") == pytest.approx(expected)
            env.reset(seed=1)


def test_columns_name_the_reward_and_how_many_captions_had_a_label(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(json.dumps({"format": "turngym captions 1", "labels": {"higher": 2}}))
    with closing(made(labels=str(path))) as env:
        assert rewards(env, "2", "99") == [2, 0]
        columns = env.step("2")[4]["columns"]
    assert columns["reward/captions"] == 0.25 and columns["outcome/caption_reward"] == 2.25
    assert columns["outcome/captions_labelled"] == 2 / 4, "the first observation is a caption, too"


def test_what_answers_an_invalid_action_is_no_caption() -> None:
    """It may quote the action, so that an agent could write captions and be paid for each."""
    with closing(made(labeller=lambda captions: [1.0] * len(captions), wait=True)) as env:
        asked = dict(env.labels.known)
        assert rewards(env, "a staircase", "2", "a staircase", "2") == [0, 1, 0, 1 / 8]
        assert set(env.labels.known) == {*asked, "higher"}


def test_without_labels_and_labeller_nothing_is_changed() -> None:
    with closing(made()) as env:
        _, reward, _, _, info = env.step("2")
        assert reward == 0 and "columns" not in info and env.state["counts"] == {}


def test_an_environment_never_waits_for_the_labeller(tmp_path: Path) -> None:
    may_answer, path = threading.Event(), tmp_path / "labels.json"

    def slow(captions: Sequence[str]) -> list[float]:
        assert may_answer.wait(60)
        return [1.0] * len(captions)

    with closing(made(labels=str(path), labeller=slow)) as env:
        assert rewards(env, "2", "2") == [0, 0] and not path.exists()
        may_answer.set()
        assert env.labels.join()
        assert rewards(env, "2", "2") == pytest.approx([1 / 27, 1 / 64]), "sights without a label count"
    assert set(json.loads(path.read_text())["labels"]) == {"from 1 to 100", "higher"}


def test_labels_are_resumed_and_shared_by_processes(tmp_path: Path, script: str) -> None:
    path = tmp_path / "labels.json"
    wrappers = wrapping(f"caption_reward:labels={path},labeller={script},wait=true")
    with make_vec("turngym/GuessTheNumber-v0", 2, backend="process", wrappers=wrappers) as vector:
        vector.reset(seed=[1, 1])
        found = vector.step(["2", "99"])[1]
    assert found.tolist() == [1.0, 0.5]
    assert json.loads(path.read_text())["labels"] == {"from 1 to 100": 0, "higher": 1, "lower": 0.5}
    with closing(made(labels=str(path))) as env:
        assert rewards(env, "2") == [1.0]
        content = json.loads(path.read_text())
        content["labels"]["lower"] = 7
        other = Labels(path)
        other.known["new"] = 3.0
        other.path, other._is_new = path, True
        path.write_text(json.dumps(content))
        other.flush()
        assert json.loads(path.read_text())["labels"]["lower"] == 7, "the labels of others stay"
        assert Labels(path).known == {**content["labels"], "new": 3.0}


class Broken:
    """Fails in a new way each time it is called."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, captions: list[str]) -> Any:
        self.asked.append(captions)
        if len(self.asked) == 1:
            raise RuntimeError("no model")
        return [[], ["good"] * len(captions), None, [float("nan")] * len(captions)][len(self.asked) % 4]


def test_what_a_labeller_does_wrong_is_counted_and_ends_nothing(tmp_path: Path) -> None:
    labeller, path = Broken(), tmp_path / "labels.json"
    with closing(made(labels=str(path), labeller=labeller, wait=True, pattern="higher")) as env:
        assert rewards(env, *["2"] * 6) == [0] * 6
        assert len(labeller.asked) == 3 == env.labels.faults, "three times each"
        assert "no model" in env.labels.first_fault and not env.labels.known
    for labels in (Labels(path, Broken()), Labels(path, Broken())):
        labels.label(["a"])
        labels.flush()
    content = json.loads(path.read_text())
    assert content["faults"] == 5 and content["labels"] == {} and "no model" in content["first_fault"]
    with closing(made(labeller=lambda captions: [None] * len(captions), wait=True)) as env:
        assert rewards(env, "2") == [0] and env.labels.faults == 0, "None says that there is no label"


def test_labels_that_come_after_the_wrapper_was_closed_are_kept(tmp_path: Path) -> None:
    path, may_answer = tmp_path / "labels.json", threading.Event()

    def slow(captions: Sequence[str]) -> list[float]:
        assert may_answer.wait(60)
        return [1.0] * len(captions)

    with closing(made(labels=str(path), labeller=slow)) as env:
        env._see("\n".join(map(str, range(60))))  # two calls of the labeller
    worker = env.labels._worker
    del env
    may_answer.set()
    assert worker is not None
    worker.join(60)
    assert len(json.loads(path.read_text())["labels"]) == 61


def test_the_maker_of_a_labeller_lives_as_long_as_the_table_that_is_found_by_its_id() -> None:
    def maker(value: float) -> Labeller:
        return lambda captions: [value] * len(captions)

    labels, alive = shared_labels("", maker, {"value": 1.0}), weakref.ref(maker)
    del maker
    gc.collect()
    assert alive() is not None and labels.labeller is not None


def test_a_labeller_that_exits_is_a_fault() -> None:
    def leave(captions: Sequence[str]) -> list[float]:
        raise SystemExit("no key")

    labels = Labels(None, leave)
    for _ in range(4):
        labels.request(["a"])
        assert labels.join()
    assert labels.faults == 3 and "no key" in labels.first_fault


@pytest.mark.parametrize("wait", [True, False])
def test_captions_without_a_label_are_bounded(wait: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caption_labels, "_MOST_LABELS", 50)
    may_answer = threading.Event()
    labels = Labels(None, lambda captions: [None for _ in captions if wait or may_answer.wait(60)])
    for number in range(100):
        (labels.label if wait else labels.request)([str(number)])
    assert len(labels._failed) + len(labels._waiting) <= 50
    may_answer.set()
    assert labels.join()


def test_a_file_that_cannot_be_written_is_a_fault(tmp_path: Path, script: str) -> None:
    (tmp_path / "file").write_text("")
    with closing(made(labels=str(tmp_path / "file" / "labels.json"), labeller=script, wait=True)) as env:
        assert rewards(env, "2") == [1.0] and env.labels.faults >= 1


@pytest.mark.parametrize("wait", [True, False])
def test_snapshots_are_exact_whatever_is_labelled_meanwhile(wait: bool, script: str) -> None:
    guesses = ["2", "99", "2", "3"]
    with closing(made(labeller=script, wait=wait)) as env, closing(made(labeller=script, wait=wait)) as other:
        rewards(env, *guesses[:2])
        saved = env.snapshot()
        assert env.labels.join()
        observation, info = env.transform_observation("", {}), env.restore(saved)
        assert env.snapshot() == saved == (other.restore(saved), other.snapshot())[1]
        assert rewards(env, *guesses[2:]) == rewards(other, *guesses[2:])
        assert env.snapshot() == other.snapshot() and observation == "" and info[1]["columns"]


def test_many_and_long_captions_are_bounded() -> None:
    seen: list[str] = []

    def label(captions: Sequence[str]) -> list[float]:
        seen.extend(captions)
        return [1.0] * len(captions)

    with closing(made(labeller=label, wait=True)) as env:
        env._see("x" * 10_000)
        env._see("\n".join(map(str, range(1000))))
    assert max(map(len, seen)) == LONGEST and len(seen) < 70


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"labeller": len, "labeller_options": {"x": 1}}, ConfigError, "labeller_options=.'x': 1.: TypeError"),
        ({"pattern": "("}, ConfigError, "not a regular expression, got '\\('"),
        ({"power": -1}, ConfigError, "power .* in \\[0, 100\\]"),
        ({"scale": "much"}, ConfigError, "scale .* must be a number"),
        ({"wait": 1}, ConfigError, "wait .* must be a bool"),
        ({"labels": 3}, ConfigError, "labels .* must be a str"),
        ({"labeller": "json:nothing"}, UnknownName, "json has no 'nothing'"),
        ({"labeller": "json:__name__"}, ConfigError, "expected a labeller"),
        ({"labeller_options": 3}, ConfigError, "must be a JSON object"),
        ({"labels": __file__}, ConfigError, "could not be read"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        made(**options)


@pytest.mark.parametrize("content", ["[]", '{"format": "turngym captions 1", "labels": {"a": "b"}}', '{"labels": {}}'])
def test_a_file_that_holds_something_else_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match="holds no labels of captions"):
        made(labels=str(path))


def judge(body: Body) -> Reply:
    scores = {"higher": "Good. Score: 8", "lower": "hm"}
    return Reply(scores.get(body["messages"][-1]["content"], "Score: 0"), usage=(30, 4))


def test_a_served_model_labels_captions() -> None:
    with chat_server(judge) as server:
        options = {"model": f"openai:m@{server.url}", "goal": "find the number", "server": QUICK}
        with closing(
            made(labeller="turngym.agents.captions:ModelLabeller", labeller_options=options, wait=True)
        ) as env:
            assert rewards(env, "2", "99") == [0.8, 0]
            labeller: Any = env.labels.labeller
            assert labeller.usage.calls == len(server.requests) == 3 and labeller.usage.tokens_in == 90
            assert "find the number" in server.requests[0]["messages"][0]["content"] and env.labels.faults == 0


TALK = """
from turngym.envs import Outcome, TextEnv


class Talk(TextEnv[int]):
    instructions = "Say anything."
    env_id = "test/Talk-v0"

    def initial_state(self, generator):
        return int(generator.integers(1000))

    def observation(self):
        return "higher"

    def apply_action(self, action):
        return Outcome(self.observation())
"""
CONFIG = TrainConfig(
    env_options={"max_turns": 3},
    algorithm="reinforce",
    iterations=1,
    max_seconds=0,
    control=False,
    rollout=RolloutConfig(groups=2, group_size=2, max_new_tokens=2),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)


def trained(folder: Path, *wrappers: str) -> tuple[dict[str, float], list[Any]]:
    """Return the metrics of an iteration, and the weights after it."""
    (folder.parent / "talk.py").write_text(TALK)
    config = replace(CONFIG, env=f"{folder.parent / 'talk.py'}:Talk", wrappers=wrappers)
    method, model = build_algorithm(config), small_model(layers=1)
    with closing(make_task(config, method)) as task:
        Trainer(config, model, build_learner(config, model, method), task, RunFolder.create(folder, config)).run()
    [metrics] = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return metrics, [each.detach().numpy() for each in model.network.parameters()]


def test_training_learns_from_the_labels(tmp_path: Path, script: str) -> None:
    labeller = script.replace(":label", ":Always")
    wrapper = f'caption_reward:labeller={labeller},labeller_options={{"value": 2}},wait=true,power=0'
    metrics, weights = trained(tmp_path / "with", wrapper)
    plain, others = trained(tmp_path / "without")
    assert metrics["rollout/reward_sum"] - plain["rollout/reward_sum"] == pytest.approx(2 * metrics["rollout/turns"])
    assert any(not np.array_equal(one, other) for one, other in zip(weights, others, strict=True))
