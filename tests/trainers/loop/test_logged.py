"""Warm-up on logs of others: the policy's own prompts and answers, and refusals of what does not fit."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import small_model

from turngym.agents.prompt_text import PromptConfig
from turngym.agents.trajectory import Trajectory, Turn
from turngym.benchmarks import evaluate
from turngym.errors import ConfigError
from turngym.trainers.loop.setup import build_algorithm
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.trainers.settings.supervised import SupervisedConfig

LAKE = "turngym/FrozenLake-v0"


def config_of(log: str | Path = "", env: str = LAKE, **settings: Any) -> TrainConfig:
    given: dict[str, Any] = {
        "env": env,
        "env_options": {},
        "algorithm": "grpo",
        "iterations": 1,
        "max_seconds": 0,
        "control": False,
        "warmup": SupervisedConfig(demonstrations=5, epochs=2, log=str(log)),
        "rollout": RolloutConfig(groups=2, group_size=2, max_new_tokens=2, prompt=PromptConfig(mode="conversation")),
        "evaluation": EvaluationConfig(episodes=0, every=0, curve_episodes=1),
    }
    return TrainConfig(**{**given, **settings})


def demonstrated(config: TrainConfig) -> list[Trajectory]:
    task = make_task(config, build_algorithm(config))
    try:
        return task.demonstrations(small_model(), config.warmup.demonstrations)
    finally:
        task.close()


@pytest.fixture(scope="module")
def solved() -> list[Trajectory]:
    """Episodes of the solver, as the policy would have played them."""
    return demonstrated(config_of())


def tokens(found: Sequence[Trajectory]) -> list[Any]:
    return [[(turn.observation, turn.action, turn.prompt_ids, turn.completion_ids) for turn in t.turns] for t in found]


def as_atif(folder: Path, found: Sequence[Trajectory], said: Any = lambda turn: {"message": turn.completion}) -> Path:
    """Write episodes as another program would: its own system prompt, no record of turngym."""
    folder.mkdir(parents=True)
    for number, each in enumerate(found):
        steps: list[dict[str, Any]] = [
            {"step_id": 1, "source": "system", "message": "You are a helpful agent."},
            {"step_id": 2, "source": "user", "message": each.turns[0].observation},
        ]
        later = [*(turn.observation for turn in each.turns[1:]), each.final_observation]
        for turn, seen in zip(each.turns, later, strict=True):
            step = {"step_id": len(steps) + 1, "source": "agent", **said(turn)}
            steps.append({**step, "observation": {"results": [{"content": seen}]}})
        content = {"schema_version": "ATIF-v1.6", "agent": {"name": "other", "version": "1"}, "steps": steps}
        (folder / f"{number:03}.json").write_text(json.dumps(content), "utf8")
    return folder


def as_inspect(path: Path, found: Sequence[Trajectory], scores: Sequence[str]) -> Path:
    samples = []
    for number, (each, score) in enumerate(zip(found, scores, strict=True)):
        messages = [{"role": "system", "content": "Think well."}]
        for turn in each.turns:
            messages += [
                {"role": "user", "content": turn.observation},
                {"role": "assistant", "content": turn.completion},
            ]
        sample = {"id": number, "epoch": 1, "messages": messages, "scores": {"match": {"value": score}}}
        samples.append({**sample, "input": "", "target": ""})
    log = {"version": 2, "eval": {"model": "openai/other", "task": "lake"}, "samples": samples}
    path.write_text(json.dumps(log), "utf8")
    return path


def test_trajectories_of_atif_become_the_demonstrations_of_the_policy(solved: list[Trajectory], tmp_path: Path) -> None:
    log = as_atif(tmp_path / "log", solved)
    assert tokens(demonstrated(config_of(log))) == tokens(solved) != []
    calls = as_atif(tmp_path / "thinking", solved, lambda turn: {"message": f"Hm.\n{turn.completion}"})
    found = demonstrated(config_of(calls))
    assert [t.turns[0].action for t in found] == [t.turns[0].action for t in solved]
    assert all(turn.completion.startswith("Hm.") for t in found for turn in t.turns), "reasoning is imitated too"


@pytest.mark.parametrize("action", ["up", "down", "left", "right"])
def test_one_slot_shows_first_actions_of_several_instances(
    action: str, solved: list[Trajectory], tmp_path: Path
) -> None:
    """An action that is illegal at the start of one instance may be the first one of a log."""
    log = as_atif(tmp_path / "log", solved[:1], lambda turn: {"message": f"<action>{action}</action>"})
    config = config_of(log)
    alone = replace(config, rollout=replace(config.rollout, num_envs=1))
    assert demonstrated(alone)[0].turns[0].action == action


def acting(turn: Turn, **more: Any) -> dict[str, Any]:
    call = {"tool_call_id": "a", "function_name": "act", "arguments": {"action": turn.action, **more}}
    return {"message": "", "tool_calls": [call]}


def test_a_call_of_act_stands_for_any_action(solved: list[Trajectory], tmp_path: Path) -> None:
    log = as_atif(tmp_path / "calls", solved, acting)
    assert tokens(demonstrated(config_of(log))) == tokens(solved) != []
    log = as_atif(tmp_path / "two", solved, lambda turn: acting(turn, why="it is near"))
    with pytest.raises(ConfigError, match="calls the tool 'act', and the environment has no tools"):
        demonstrated(config_of(log))


@pytest.mark.parametrize(
    ("name", "written"), [("plain", "{}"), ("boxed", "So \\boxed{{{}}}."), ("json", '{{"action": "{}"}}')]
)
def test_the_format_that_finds_an_action_is_named(
    name: str, written: str, solved: list[Trajectory], tmp_path: Path
) -> None:
    log = as_atif(tmp_path / "log", solved, lambda turn: {"message": written.format(turn.action)})
    first = solved[0].turns[0].action
    with pytest.raises(ConfigError, match=f"pass --rollout.format {name}, which reads it as '{first}', or another log"):
        demonstrated(config_of(log))


def test_the_log_on_the_page_is_a_demonstration(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "logs.md").read_text("utf8")
    (tmp_path / "own.json").write_text(page.partition('title="own.json"\n')[2].partition("```")[0], "utf8")
    config = config_of(tmp_path / "own.json", env="turngym/GuessTheNumber-v0")
    [found] = demonstrated(config)
    assert [turn.action for turn in found.turns] == ["50", "75"] and found.turns[1].observation == "higher"


def test_the_solved_samples_of_an_inspect_log_become_demonstrations(solved: list[Trajectory], tmp_path: Path) -> None:
    log = as_inspect(tmp_path / "log.json", solved, ["C", "I", "C", "C", "I"])
    assert tokens(demonstrated(config_of(log))) == tokens([solved[0], *solved[2:4]]), "only what was solved"


def test_episodes_of_an_evaluation_are_imitated_unless_they_are_of_test_tasks(tmp_path: Path) -> None:
    for split in ("train", "test"):
        evaluate(LAKE, "expert", episodes=3, options={"split": split}, out=tmp_path / split)
    found = demonstrated(config_of(tmp_path / "train"))
    assert len(found) == 3 and all(turn.completion == f"<action>{turn.action}</action>" for turn in found[0].turns)
    with pytest.raises(ConfigError, match="of the split test, and imitating them would spoil"):
        demonstrated(config_of(tmp_path / "test"))
    for settings in ({"env_options": {"max_turns": 9}}, {"wrappers": ("turn_limit",)}):
        with pytest.raises(ConfigError, match=r"was recorded with (env_options|wrappers) .*, and the run has"):
            demonstrated(config_of(tmp_path / "train", **settings))
    about = json.loads((tmp_path / "train" / "config.json").read_text("utf8"))
    del about["environments"][0]["options"]["split"]
    (tmp_path / "train" / "config.json").write_text(json.dumps(about), "utf8")
    with pytest.raises(ConfigError, match="of the split test"):
        demonstrated(config_of(tmp_path / "train"))


def test_logs_that_do_not_fit_are_refused(solved: list[Trajectory], tmp_path: Path) -> None:
    call = {"tool_call_id": "a", "function_name": "shell", "arguments": {"command": "ls"}}
    logs = {
        "prose": as_atif(tmp_path / "prose", solved, lambda turn: {"message": "I go there."}),
        "shell": as_atif(tmp_path / "shell", solved, lambda turn: {"message": "", "tool_calls": [call]}),
        "other": as_atif(tmp_path / "other", solved, lambda turn: {"message": "<action>guess 7</action>"}),
        "failed": as_inspect(tmp_path / "failed.json", solved, "IIIII"),
        "absent": tmp_path / "absent.json",
    }
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "1.json").write_text('{"schema_version": "ATIF-v1.6", "steps": 3}', "utf8")
    listing = RolloutConfig(prompt=PromptConfig(legal_actions=True))
    refused = {
        "no action in the format 'tag' is in the answer 'I go there.'": config_of(logs["prose"]),
        "calls the tool 'shell', and the environment has no tools": config_of(logs["shell"]),
        "none of its 5 episodes starts with a legal action of turngym/FrozenLake-v0": config_of(logs["other"]),
        "has no solved episode without invalid actions among 5": config_of(logs["failed"]),
        "is not a log of atif, harbor, inspect, verifiers and no folder": config_of(logs["absent"]),
        "is not a log of atif that can be read": config_of(tmp_path / "bad"),
        "does not have the legal actions": config_of(logs["prose"], rollout=listing),
        "in one environment with one agent": config_of(logs["prose"], env="turngym/KuhnPoker-v0", algorithm="rae"),
    }
    for message, config in refused.items():
        with pytest.raises(ConfigError, match=message):
            demonstrated(config)
    with pytest.raises(ConfigError, match=r"needs a warm-up, and some/model has none: pass --warmup\.models any"):
        config_of(logs["prose"], model="some/model")
