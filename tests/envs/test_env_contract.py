"""The environment contract in corner cases: subclasses, damaged snapshots, splits."""

import json
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
import torch
from small import small_model, sokoban_vector
from toy_envs import Counter, Faulty

from turngym.__main__ import main
from turngym.agents.episodes.evaluate import evaluate, write_episodes
from turngym.agents.episodes.rollout import rollout
from turngym.agents.players import make_agent
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.envs.core import Outcome, TextEnv
from turngym.envs.textgames.sokoban.env import Sokoban
from turngym.envs.transcript import replay, transcript
from turngym.envs.vector import make_vec
from turngym.errors import BrokenCode, ConfigError, ModelError
from turngym.trainers.algorithms import build
from turngym.trainers.engine.learner import Learner, UpdateConfig


class Bonus(Counter):
    """A subclass that passes its options on."""

    def __init__(self, bonus: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bonus = bonus


def test_a_subclass_may_pass_options_on_and_its_snapshot_knows_them() -> None:
    env = Bonus(bonus=1, goal=5)
    env.reset(seed=0)
    assert env.settings == {"bonus": 1, "goal": 5}
    with pytest.raises(ConfigError, match="belongs to"):
        Bonus(bonus=1, goal=6).restore(env.snapshot())


def test_an_unknown_option_is_named_with_its_nearest() -> None:
    with pytest.raises(ConfigError, match=r"Sokoban-v0 has no option 'boxs'\. Did you mean 'boxes'\?"):
        gymnasium.make("turngym/Sokoban-v0", boxs=2)


@pytest.mark.parametrize(
    ("key", "value"),
    [("turn", -5), ("turn", "x"), ("turn", 10**6), ("success", 7), ("running", 1), ("instance", 3), ("state", {})],
)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(key: str, value: Any) -> None:
    env = Sokoban()
    env.reset(seed=3)
    env.step("up")
    whole = env.snapshot()
    broken = {**json.loads(whole), key: value}
    with pytest.raises(ConfigError, match="damaged snapshot"):
        env.restore(json.dumps(broken).encode())
    assert env.snapshot() == whole


def test_a_snapshot_without_a_generator_or_nested_too_deep_is_refused() -> None:
    env = Sokoban()
    env.reset(seed=3)
    content = json.loads(env.snapshot())
    del content["generator"]
    with pytest.raises(ConfigError, match="damaged snapshot"):
        env.restore(json.dumps(content).encode())
    with pytest.raises(ConfigError, match="not a snapshot"):
        env.restore(b"[" * 100_000)


def test_rendering_before_the_first_reset_shows_nothing() -> None:
    env: TextEnv[str] = Sokoban(render_mode="ansi")
    assert env.render() == ""
    env.reset(seed=0)
    assert env.render() != ""


def test_turn_limits_are_whole_numbers() -> None:
    with pytest.raises(ConfigError, match=r"whole number|max_turns"):
        Counter(max_turns=2.5)  # type: ignore[arg-type]


def test_an_interrupted_step_of_a_process_vector_mixes_up_no_answers() -> None:
    vector = make_vec(env_fns=[lambda: Faulty(delay=1.0)], backend="process", autoreset_mode="disabled")
    vector.reset(seed=1)
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt):
        vector.step(["up"])
    assert repr(vector.reset(seed=4)) == repr(make_vec(env_fns=[Faulty], autoreset_mode="disabled").reset(seed=4))
    vector.close()


def test_an_action_with_a_lone_surrogate_is_written_and_read_back(tmp_path: Path) -> None:
    agent = make_agent("scripted:\udcff")
    result, _ = evaluate("turngym/GuessTheNumber-v0", agent, episodes=2)
    write_episodes(tmp_path / "episodes.jsonl", result)
    lines = (tmp_path / "episodes.jsonl").read_text("utf8").splitlines()
    assert json.loads(lines[0])["actions"][0] == "\udcff"


def test_a_transcript_cannot_import_a_module(tmp_path: Path) -> None:
    text = transcript(gymnasium.make("turngym/TowerOfHanoi-v0"), 0, ["A C"])
    head, _, rest = text.partition("\n")
    hostile = json.dumps({**json.loads(head), "env_id": "this:x"})
    with pytest.raises(ConfigError, match="not registered"):
        replay(f"{hostile}\n{rest}")
    assert "this" not in sys.modules


def test_a_slot_that_dies_right_after_its_reset_is_a_fault_of_its_episode() -> None:
    vector = make_vec(env_fns=[Counter, Counter], backend="process", num_workers=2, autoreset_mode="disabled")
    original = vector.call
    killed: list[int] = []

    def call(name: str, *args: Any, **kwargs: Any) -> Any:
        if not killed:
            killed.append(1)
            victim = vector._backend._workers[0].handle.pid  # type: ignore[attr-defined]
            os.kill(victim, signal.SIGKILL)
        return original(name, *args, **kwargs)

    vector.call = call  # type: ignore[method-assign]
    trajectories = rollout(vector, make_agent("scripted:up"), [EpisodeSpec(i, i, 0) for i in range(2)])
    vector.close()
    assert len(trajectories) == 2
    assert not trajectories[1].fault and trajectories[1].success == 1


def test_a_mistyped_model_leaves_no_run_folder(tmp_path: Path) -> None:
    from dataclasses import replace

    from turngym.trainers.loop.job import train
    from turngym.trainers.settings.config import TrainConfig

    config = replace(TrainConfig(), model=str(tmp_path / "typo"))
    with pytest.raises(ModelError, match="there is no model at"):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_training_refuses_a_split(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["train", "--env-options", "split=test", "--run-dir", str(tmp_path / "run")]
    assert main(words) == 2
    assert "leave out split" in capsys.readouterr().err


def single(number: int, prompt: int, reward: float) -> Trajectory:
    ids = (40 + prompt, 41, 42)
    turn = Turn("o", "o", "a", prompt_ids=ids, completion_ids=(50,), logprobs=(-1.0,), reward=reward)
    return Trajectory(EpisodeSpec(number, 0, 0), turns=[turn], terminated=True)


def test_minibatches_weigh_every_row_the_same_however_often_it_repeats() -> None:
    """Many copies of one sequence and a few singles: the updates' gradients must add up to the whole batch's."""
    trajectories = [single(i, 0, float(i % 2)) for i in range(40)]
    trajectories += [single(40 + i, 1 + i, 1.0) for i in range(7)]
    model = small_model(dtype=torch.float64)
    gradients: dict[int, list[torch.Tensor]] = {}
    for minibatches in (1, 4):
        config = UpdateConfig(max_grad_norm=0, minibatches=minibatches)
        learner = Learner(model, build("reinforce", {"reinforce": {"entropy_coef": 0.0}}), config)
        learner.optimizer.step = lambda *_, **__: None  # type: ignore[assignment, method-assign]
        total = [torch.zeros_like(p) for p in learner.policy_parameters]
        original = learner._apply

        def add(
            probes: Any, metrics: Any, learner: Any = learner, total: Any = total, original: Any = original
        ) -> None:
            for sum_, parameter in zip(total, learner.policy_parameters, strict=True):
                sum_ += 0 if parameter.grad is None else parameter.grad
            original(probes, metrics)

        learner._apply = add  # type: ignore[method-assign]
        learner.update(trajectories, 0)
        gradients[minibatches] = [sum_ / minibatches for sum_ in total]
    for a, b in zip(gradients[1], gradients[4], strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-6)


def test_merged_adapters_give_the_logits_of_the_adapted_network(tmp_path: Path) -> None:
    from turngym.agents.models.loading import load_model
    from turngym.trainers.engine.adapters import add_adapters, without_adapters

    model = small_model()
    adapted = add_adapters(model, 2, seed=0)
    with torch.no_grad():
        for name, parameter in adapted.network.named_parameters():
            if "lora_B" in name:
                parameter.fill_(0.1)
        ids = torch.tensor([[40, 41, 42]])
        expected = adapted.network(ids).logits
        without_adapters(adapted).save(tmp_path / "merged")
        torch.testing.assert_close(
            load_model(str(tmp_path / "merged")).network(ids).logits, expected, atol=1e-5, rtol=0
        )
        torch.testing.assert_close(adapted.network(ids).logits, expected, atol=0, rtol=0)


def test_a_prompt_beyond_the_limit_says_what_to_do() -> None:
    from small import agent_of

    [played] = rollout(sokoban_vector(1), agent_of(small_model(), max_prompt_tokens=5), [EpisodeSpec(0, 0, 0)])
    assert played.truncation_reason == "context" and "more than max_prompt_tokens=5" in played.truncation_detail


class Minimal(TextEnv[str]):
    def initial_state(self, generator: np.random.Generator) -> int:
        return int(generator.integers(1000))

    def observation(self) -> str:
        return "Well?"

    def apply_action(self, action: str) -> Outcome[str]:
        return Outcome("No.")


@pytest.mark.parametrize("given", [["up", "down"], ("up", "down"), deque(["up", "down"])])
def test_legal_actions_are_any_sequence_of_texts(given: Sequence[str]) -> None:
    """The how-to says "list", and a list raised TypeError."""

    class Listing(Minimal):
        def legal_actions(self) -> Sequence[str]:
            return given

    assert Listing().reset(seed=0)[1]["legal_actions"] == ("up", "down")


@pytest.mark.parametrize("given", ["up", {"up"}, 3, None])
def test_legal_actions_that_are_no_sequence_are_refused(given: Any) -> None:
    class Listing(Minimal):
        def legal_actions(self) -> Sequence[str]:
            return cast("Sequence[str]", given)

    with pytest.raises(BrokenCode, match="must return a list or tuple of texts"):
        Listing().reset(seed=0)
