"""Groups that start from recorded states: the same state within a group, rewards of the continuation, resumes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from small import small_model

from turngym.agents.players.random import RandomAgent
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.recordings.states import read_states
from turngym.agents.trajectory import Trajectory
from turngym.benchmarks import evaluate
from turngym.benchmarks.cli.train import parse_train
from turngym.errors import ConfigError
from turngym.trainers.loop.setup import build_algorithm, build_learner, iteration_specs
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.task import EnvTask
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

LAKE = "turngym/FrozenLake-v0"
OPTIONS: dict[str, Any] = {"max_turns": 8}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The expert's episodes on the train split."""
    folder = tmp_path_factory.mktemp("recorded") / "base"
    evaluate(LAKE, "expert", episodes=8, options={"split": "train", **OPTIONS}, out=folder)
    return folder


def config_of(start: str, **settings: Any) -> TrainConfig:
    """Return a run of two iterations without a warm-up."""
    given: dict[str, Any] = {
        "env": LAKE,
        "env_options": OPTIONS,
        "algorithm": "grpo",
        "iterations": 2,
        "max_seconds": 0,
        "control": False,
        "checkpoint_every": 1,
        "rollout": RolloutConfig(groups=2, group_size=2, max_new_tokens=3, sampler="transformers"),
        "evaluation": EvaluationConfig(episodes=2, every=2, curve_episodes=2),
        "start": start,
    }
    return TrainConfig(**{**given, **settings})


def task_of(config: TrainConfig) -> EnvTask:
    task = make_task(config, build_algorithm(config))
    assert isinstance(task, EnvTask)
    return task


class Noted(RandomAgent):
    """Random play that notes the recorded turns it follows."""

    def __init__(self) -> None:
        super().__init__(0)
        self.followed: dict[int, list[str]] = {}

    def follow(self, request: Any, action: str, completion: str = "") -> Any:
        self.followed.setdefault(request.episode, []).append(action)
        return super().follow(request, action, completion)


def replayed(before: Sequence[str], trajectory: Trajectory) -> list[tuple[str, float]]:
    """Return observation and reward of each new turn, played again from the reset on."""
    env = gymnasium.make(LAKE, split="train", **OPTIONS)
    seen, _ = env.reset(seed=trajectory.spec.seed)
    found = []
    for action in [*before, *(turn.action for turn in trajectory.turns)]:
        shown = seen
        seen, reward, *_ = env.step(action)
        found.append((shown, float(reward)))
    env.close()
    return found[len(before) :]


def outcome(found: Sequence[Trajectory]) -> list[Any]:
    return [(t.spec.seed, t.success, [(turn.observation, turn.action, turn.reward) for turn in t.turns]) for t in found]


def test_groups_start_from_one_recorded_state_each_and_earn_what_its_continuation_earns(base: Path) -> None:
    start = f"{base}@75%"
    known = {
        (state.seed, state.beginning.observation, tuple(turn.action for turn in state.beginning.turns))
        for _, states in read_states(start).found
        for state in states
    }
    outcomes = []
    for backend in ("sync", "process"):
        rollout = RolloutConfig(groups=6, group_size=4, backend=backend)
        task, agent = task_of(config_of(start, rollout=rollout)), Noted()
        found = task.play(agent, iteration_specs(task.config, 0))
        metrics = task.metrics()
        task.close()
        starts: dict[int, set[Any]] = {}
        for each in found:
            before = agent.followed.get(each.spec.episode, [])
            state = each.spec.seed, each.turns[0].observation, tuple(before)
            starts.setdefault(each.spec.group, set()).add(state)
            assert state in known
            assert replayed(before, each) == [(turn.observation, turn.reward) for turn in each.turns]
        assert all(len(group) == 1 for group in starts.values()) and len(set.union(*starts.values())) > 1
        assert len({each.reward_sum for each in found}) > 1, "some of the continuations reach the goal"
        assert metrics["rollout/continued"] == len(found) == 24
        assert metrics["rollout/recorded_turns"] == sum(map(len, agent.followed.values())) > 0
        outcomes.append(outcome(found))
    assert outcomes[0] == outcomes[1]


class Captured(Trainer):
    """A run that keeps the episodes that it gathers."""

    found: list[Trajectory]

    @classmethod
    def of(cls, config: TrainConfig, folder: RunFolder) -> "Captured":
        method, model = build_algorithm(config), small_model()
        learner = build_learner(config, model, method)
        task = task_of(config)
        trainer = cls(config, model, learner, task, folder, lambda: task.curve_point(model))
        trainer.found = []
        gather = task.gather

        def noted(*given: Any, **more: Any) -> list[Trajectory]:
            played = gather(*given, **more)
            trainer.found += played
            return played

        task.gather = noted  # type: ignore[method-assign]
        return trainer


def test_a_resumed_run_starts_from_the_same_states_and_evaluates_from_resets(base: Path, tmp_path: Path) -> None:
    config = config_of(f"{base}@every")
    records, played = [], []
    for name, cut in (("whole", 2), ("resumed", 1)):
        folder = RunFolder.create(tmp_path / name, config)
        for iterations in dict.fromkeys((cut, 2)):
            trainer = Captured.of(replace(config, iterations=iterations), folder)
            trainer.resume()
            trainer.run()
            trainer.task.close()
            played.append(outcome(trainer.found))
        left_out = ("time/", "rollout/prefilled", "rollout/reused", "rollout/cache", "eval/")
        records.append([{k: v for k, v in each.items() if not k.startswith(left_out)} for each in folder.metrics()])
    whole, first, second = played
    assert whole == first + second and records[0] == records[1]
    assert [each["rollout/continued"] for each in records[0]] == [4, 4]
    assert sum(each["rollout/recorded_turns"] for each in records[0]) > 0
    point = trainer.evaluate()
    task = task_of(replace(config, start=""))
    assert point == task.curve_point(trainer.model), "evaluations start with resets"
    task.close()
    with pytest.raises(ConfigError, match="has other states than when the run began: put the recordings back"):
        changed = task_of(replace(config, start=f"{base}:0@every"))
        changed.close()
        changed.resume(folder, trainer.model, 2)


def test_the_policy_reads_the_recorded_turns(base: Path) -> None:
    config = config_of(f"{base}@2")
    rollout = replace(config.rollout, prompt=PromptConfig(mode="conversation", instructions=False))
    task, model = task_of(replace(config, rollout=rollout)), small_model()
    first = task.gather(model, 0, 0)[0]
    task.close()
    text = str(model.tokenizer.decode(list(first.turns[0].prompt_ids)))
    assert text.count("<action>") == 2 and first.turns[0].observation in text


def test_each_environment_of_a_mixture_has_its_own_states(base: Path, tmp_path: Path) -> None:
    evaluate(
        "turngym/NumberLine-v0", "expert", episodes=4, options={"split": "train", **OPTIONS}, out=tmp_path / "line"
    )
    starts = {"FrozenLake": {"start": f"{base}@1"}, "NumberLine": {"start": f"{tmp_path / 'line'}@1"}}
    config = config_of("", envs=(LAKE, "turngym/NumberLine-v0"), per_env=starts)
    folder, task, model = RunFolder.create(tmp_path / "run", config), make_task(config), small_model()
    found = task.gather(model, 0, 0)
    assert {each.env_id for each in found} == set(config.envs)
    assert task.metrics()["rollout/recorded_turns"] == task.metrics()["rollout/continued"] + len(found)
    task.save(folder)
    task.resume(folder, model, 0)
    for broken in ("{", "[]"):
        (folder.path / "starts.json").write_text(broken, "utf8")
        with pytest.raises(ConfigError, match=r"starts\.json cannot be read .* put it back, or delete it"):
            task.resume(folder, model, 0)
    task.close()


def test_what_cannot_start_from_recorded_states_is_refused(base: Path, tmp_path: Path) -> None:
    start = f"{base}@1"
    evaluate(LAKE, "expert", episodes=2, out=tmp_path / "test")
    refused: dict[str, TrainConfig] = {
        "has episodes of the split test, and training on them": config_of(f"{tmp_path / 'test'}@1"),
        "was recorded with env 'turngym/FrozenLake-v0'": config_of(start, env="turngym/NumberLine-v0"),
        "was recorded with env_options {'max_turns': 8}, .*: pass --env-options max_turns=8.": config_of(
            start, env_options={}
        ),
        "branches off from whole episodes by itself": config_of(start, algorithm="vine_ppo"),
        "are played from deal to end": config_of(start, env="turngym/KuhnPoker-v0", algorithm="rae"),
        "keep whole episodes": config_of(start, rollout=replace(config_of(start).rollout, journal=True)),
        "names no recorded state": config_of(str(base)),
    }
    for message, config in refused.items():
        with pytest.raises(ConfigError, match=message):
            make_task(config, build_algorithm(config))


def test_the_command_line_takes_from() -> None:
    assert parse_train(["--env", LAKE, "--from", "base@50%"])[0].start == "base@50%"
    assert parse_train(["--env", LAKE, "--start=base@50%"])[0].start == "base@50%"
