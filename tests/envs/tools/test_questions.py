"""Tasks from a file: lines are checked, splits are stable, judges reward right answers and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from turngym.agents.agent_program import QUESTIONS, ProgramConfig
from turngym.envs.own import find_spec
from turngym.envs.tools.questions import FileTask, Questions, read_tasks
from turngym.envs.tools.questions.judges import find_judge
from turngym.errors import BrokenCode, ConfigError, UnknownName
from turngym.trainers.loop.setup import training_vector
from turngym.trainers.settings.config import EvaluationConfig, TrainConfig


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "tasks.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf8")
    return path


def numbers(folder: Path, count: int = 30) -> Path:
    return written(folder, *({"question": f"{k}+1?", "answer": k + 1} for k in range(count)))


def test_a_file_is_read_and_shared_out_by_questions_alone(tmp_path: Path) -> None:
    tasks = read_tasks(numbers(tmp_path))
    assert Counter(task.split for task in tasks) == {"train": 24, "dev": 3, "test": 3}
    assert tasks[4] == FileTask("5", "4+1?", ("5",), {}, tasks[4].split)
    turned = written(tmp_path, *({"id": f"x{task.id}", "prompt": task.instruction} for task in reversed(tasks)))
    assert {task.id[1:]: task.split for task in read_tasks(turned)} == {task.id: task.split for task in tasks}
    few = read_tasks(written(tmp_path, {"prompt": "a"}, "", {"prompt": "b", "files": {"in/x.txt": "1"}}))
    assert [(task.id, task.split) for task in few] == [("1", ""), ("3", "")] and few[1].files["in/x.txt"]
    own = [{"prompt": split, "split": split} for split in ("train", "dev", "test")]
    assert [task.split for task in read_tasks(written(tmp_path, *own))] == ["train", "dev", "test"]


def test_repeated_questions_share_a_split(tmp_path: Path) -> None:
    """The split was drawn for each line: 28 of 30 questions of test were also in train."""
    lines = [{"question": f"{'What' if k % 2 else '  what'} is {k % 60}+1?", "answer": k % 60 + 1} for k in range(300)]
    found: dict[str, set[str]] = {}
    for task in read_tasks(written(tmp_path, *lines)):
        found.setdefault(task.instruction.strip().casefold(), set()).add(task.split)
    assert len(found) == 60 and all(len(splits) == 1 for splits in found.values())
    assert set().union(*found.values()) == {"train", "dev", "test"}
    one_question = [{"prompt": "Mend it.", "files": {"a.py": str(k)}} for k in range(30)]
    tasks = read_tasks(written(tmp_path, *one_question))
    assert Counter(task.split for task in tasks) == {"train": 24, "dev": 3, "test": 3}, "files are of the question"


@pytest.mark.parametrize("repeats", [(1, 1, 28), (28, 1, 1), (10, 10, 10)])
def test_every_split_has_a_question_where_there_are_three(repeats: tuple[int, ...], tmp_path: Path) -> None:
    lines = [{"question": f"Question {k}"} for k, count in enumerate(repeats) for _ in range(count)]
    assert {task.split for task in read_tasks(written(tmp_path, *lines))} == {"train", "dev", "test"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "expected one JSON object, got '{', which is not JSON"),
        ("[" * 100_000, "nested too deep"),
        ("3", "expected one JSON object, got a text or number"),
        ({"instruction": "a", "anwser": "b"}, "Did you mean 'answer'"),
        ({"answer": "b"}, "expected one of question, prompt and instruction, got answer"),
        ({"prompt": "a", "question": "b"}, "got prompt and question"),
        ({"prompt": "  "}, "prompt is empty"),
        ({"prompt": ["a"]}, "must be a string, got a list"),
        ({"prompt": "a", "answer": True}, "must be a string, got a truth value"),
        ('{"prompt": "a", "answer": NaN}', "NaN is not a number"),
        ({"prompt": "a", "answer": []}, "an empty list"),
        ({"prompt": "a", "answer": {"x": 1}}, "got an object"),
        ({"prompt": "a", "split": "trian"}, "split must be one of"),
        ({"prompt": "a", "split": "dev"}, "line 2: some lines name a split and others do not"),
        ({"id": "1", "prompt": "a"}, "line 1 has the id '1' already"),
        ({"id": "x" * 201, "prompt": "a"}, "1 to 200 characters"),
        ({"prompt": "a", "files": {"../x": "b"}}, "not a name of a file below"),
        ({"prompt": "a", "files": {"/etc/x": "b"}}, "not a name of a file below"),
        ({"prompt": "a", "files": {"x//y": "b"}}, "not a name of a file below"),
        ({"prompt": "a", "files": {"": "b"}}, "not a name of a file below"),
        ({"prompt": "a", "files": {"x\n": "b"}}, "not a name of a file below"),
        ({"prompt": "a", "files": {"x": "b", "x/y": "c"}}, "lies below another file"),
        ({"prompt": "a", "files": {"x": ["b"]}}, "must be a string"),
        ({"prompt": "a", "files": ["x"]}, "an object of names and texts"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(line: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told) as error:
        read_tasks(written(tmp_path, {"prompt": "first"}, line))
    assert "line 2" in str(error.value) or "line 1" in str(error.value)


def test_files_that_hold_no_tasks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "binary", written(tmp_path, "", " "), "/proc/self/mem"):
        with pytest.raises(
            ConfigError, match=r"not a file|cannot be read|holds no questions|line 1: expected one JSON object"
        ):
            read_tasks(path)


def test_a_file_need_not_name_every_split(tmp_path: Path) -> None:
    path = str(written(tmp_path, {"prompt": "a", "split": "train"}, {"prompt": "b", "split": "test"}))
    for split, prompt in (("train", "a"), ("test", "b")):
        env = Questions(path, "none", form="plain", split=split)
        assert env.reset(seed=0)[0] == prompt and env.finite_instances == 1
    with pytest.raises(ConfigError, match="no question of the split 'dev', only of test, train"):
        Questions(path, "none", form="plain", split="dev")
    few = str(written(tmp_path, {"prompt": "a"}))
    assert Questions(few, "none", split="dev").tasks() == ("1",), "too few to share out: all are in each"
    only = written(tmp_path, {"prompt": "a", "answer": "b", "split": "train"})
    config = TrainConfig(agent=ProgramConfig(tasks=str(only)))
    with pytest.raises(ConfigError, match=r"no question of the split 'dev', which training .* --evaluation.every 0"):
        training_vector(config)
    without = replace(config, evaluation=EvaluationConfig(every=0))
    with pytest.raises(
        ConfigError, match=r"no question of the split 'test', which training .* --evaluation.episodes 0"
    ):
        training_vector(without)
    training_vector(replace(config, evaluation=EvaluationConfig(every=0, episodes=0))).close()


@pytest.mark.parametrize(
    ("judge", "answer", "right", "wrong"),
    [
        ("exact", "Yes", [" Yes\n"], ["yes", "", "Yes."]),
        ("normalised", "The Danube", ["danube.", "the  DANUBE"], ["", "Danube river", "a"]),
        ("normalised", "The", ["The"], ["", "a", "!"]),
        ("wide", "Forty-two", ["42", "forty\u2013two", "\u201cForty two\u201d"], ["", "43", "forty"]),
        ("contains", "Danube", ["It is the Danube, I think."], ["", "Danubes"]),
        (
            "numeric",
            "1,250",
            ["so it costs 1250 dollars", "1250.0", "10-8 is wrong, 1250"],
            ["", "125", "none", "12500"],
        ),
        ("numeric", "9007199254740993", ["9007199254740993"], ["9007199254740992"]),
        ("numeric", "0.1", ["0.10", "1e-1"], ["0.2", "9" * 1000]),
        ("math", "1/2", ["0.5", r"\frac{1}{2}"], ["2", ""]),
    ],
)
def test_judges_reward_right_answers_alone(judge: str, answer: str, right: list[str], wrong: list[str]) -> None:
    task = FileTask("t", "?", ("something else 77777", answer) if judge != "math" else (answer,))
    found = find_judge(judge, [task])
    assert [found(task, each) for each in right] == [(1.0, True)] * len(right)
    assert [found(task, each) for each in wrong] == [(0.0, False)] * len(wrong)


def test_hostile_answers_are_judged_at_once() -> None:
    task = FileTask("t", "?", ("7",))
    for judge in ("exact", "normalised", "wide", "contains", "numeric"):
        for answer in ("1" * 100_000, "1," * 50_000, "-" * 100_000, "1e" * 50_000, "1.1." * 25_000, "\ud800", "٣"):
            assert not find_judge(judge, [task])(task, answer).success


def test_a_judge_of_ones_own_is_called_with_task_and_answer(tmp_path: Path) -> None:
    path = tmp_path / "judging.py"
    path.write_text(
        "def length(task, answer):\n    return len(answer) / len(task.instruction)\n"
        "def text(task, answer):\n    return 'good'\n"
        "def right(task, answer):\n    return answer == task.id\n"
    )
    task = FileTask("x", "ab")
    assert find_judge(f"{path}:length", [task])(task, "a") == (0.5, False)
    assert find_judge(f"{path}:right", [task])(task, "x") == (1.0, True)
    with pytest.raises(BrokenCode, match="must return True, False or a finite number"):
        find_judge(f"{path}:text", [task])(task, "a")
    with pytest.raises(UnknownName, match="Did you mean 'numeric'"):
        find_judge("numerc", [task])
    with pytest.raises(ConfigError, match="'x' has no answer"):
        find_judge("exact", [task])
    with pytest.raises(ConfigError, match="has no number"):
        find_judge("numeric", [FileTask("x", "?", ("seven",))])


def test_the_environment_draws_tasks_of_its_split_by_seed(tmp_path: Path) -> None:
    path = str(numbers(tmp_path))
    env = Questions(path, "numeric", form="plain")
    drawn = [env.reset(seed=seed)[1]["columns"]["task_id"] for seed in range(40)]
    assert drawn == [env.reset(seed=seed)[1]["columns"]["task_id"] for seed in range(40)]
    others = {task.id for task in read_tasks(path) if task.split != "train"}
    assert len(set(drawn)) > 10 and not others & set(drawn)
    shown, _ = env.reset(options={"task": drawn[0]})
    saved = env.snapshot()
    assert env.step(f"It is {env.expert_action()}.")[1:4] == (1.0, True, False)
    env.restore(saved)
    _, reward, terminated, _, info = env.step("no idea")
    assert (reward, terminated, info["success"], shown) == (0.0, True, 0, env.task.instruction)
    assert Questions.refusal({"data": "x"}) and Questions.refusal(
        {"reward": "os:remove"}
    )  # a file of others names no code


def test_settings_take_the_tasks_as_their_environment(tmp_path: Path) -> None:
    path = str(numbers(tmp_path))
    config = TrainConfig(agent=ProgramConfig(tasks=path, judge="numeric"))
    assert (config.env, config.env_options) == (QUESTIONS, {"data": path, "reward": "numeric", "form": "plain"})
    assert TrainConfig.from_json(json.loads(json.dumps(config.as_json()))) == config
    made: Any = find_spec(config.env).make(**config.env_options).unwrapped
    assert made.tasks()
    elsewhere = TrainConfig(agent=ProgramConfig(command="agent", tasks=path, judge="verifier:progress"))
    assert elsewhere.env_options["reward"] == "none" and elsewhere.agent.verifier == "progress"
    with pytest.raises(ConfigError, match=r"leave out --agent.tasks"):
        TrainConfig(env="turngym/NumberLine-v0", agent=ProgramConfig(tasks=path))
    refused: tuple[dict[str, Any], ...] = (
        {"judge": "numeric"},
        {"tasks": path, "judge": "program"},
        {"tasks": path, "judge": ""},
    )
    for wrong in refused:
        with pytest.raises(ConfigError, match="judge"):
            ProgramConfig(**wrong)
    with pytest.raises(ConfigError, match="answer must be one of"):
        ProgramConfig(answer="printed")  # type: ignore[arg-type]
