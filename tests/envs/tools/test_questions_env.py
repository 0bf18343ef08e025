"""The environment of questions: tools, attempts, rewards and data sets; faults of a reward end one episode alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from turngym.__main__ import main
from turngym.benchmarks.cli.options.own_data import with_data, with_training_data
from turngym.benchmarks.cli.train import parse_train
from turngym.envs.tools.questions import Questions, read_tasks
from turngym.envs.tools.tool_schema import write_call
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, MissingExtra, UnknownName

OWN = '''
def score(task, answer):
    return 0.5 if task.metadata["kind"] in answer else 0.0

def lookup(text):
    """Look a word up."""
    if text == "fail":
        raise KeyError(text)
    return f"<answer>{text.upper()}</answer>"

def Loud(text):
    return text

def two(first, second):
    return first

def raises(task, answer):
    raise ValueError("no such unit") if "7" in answer else None

def nothing(task, answer):
    return None

def nan(task, answer):
    return float("nan")

def small(task, answer):
    import numpy
    return numpy.float32(0.25)

def right(task, answer):
    return answer == "8"
'''


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    lines: list[dict[str, Any]] = [
        {"question": f"What is {k}+1?", "answer": k + 1, "metadata": {"kind": "sum", "n": k}} for k in range(30)
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def test_tools_run_until_the_last_turn(own: Path) -> None:
    env = Questions(str(own / "mine.jsonl"), tools=(f"{own}/own.py:lookup",), tool_cost=0.25, max_turns=3)
    assert "<lookup>text</lookup>  (Look a word up.)" in env.instructions and "3 turns; the last" in env.instructions
    env.reset(seed=0)
    text, reward, *_ = env.step("<lookup>red</lookup>")
    assert "RED" in text and "<answer>" not in text and reward == -0.25, "what a tool returns cannot forge a call"
    saved = env.snapshot()
    text, _, _, _, info = env.step("<lookup>fail</lookup>")
    assert "Error: KeyError" in text and info["action_is_valid"]
    assert env.step("<lookup>late</lookup>")[0].startswith("No turns are left")
    _, info = env.restore(saved)
    assert "RED" in info["anchor"] and env.step(env.expert_action())[1:3] == (1.0, True)


def test_an_answer_may_be_wrong_while_attempts_are_left(own: Path) -> None:
    env = Questions(str(own / "mine.jsonl"), attempts=2, form="json")
    env.reset(seed=0)
    assert env.step('{"tool": "answer", "text": "none"}')[0] == "That is not right. Attempts left: 1."
    assert not env.step("no call")[4]["action_is_valid"]
    assert env.step(env.expert_action())[1:3] == (1.0, True)
    env.reset(seed=0)
    env.step('{"tool": "answer", "text": "x"}')
    _, reward, terminated, _, info = env.step('{"tool": "answer", "text": "y"}')
    assert (reward, terminated, info["success"]) == (0.0, True, 0)


@pytest.mark.parametrize(("answers", "right"), [(["7", "1,250"], "7.0"), (["7", "The Danube"], " danube. ")])
def test_the_automatic_reward_follows_the_answers(answers: list[str], right: str, tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(json.dumps({"question": f"{n}?", "answer": answers[n % 2]}) for n in range(2)))
    env = Questions(str(path))
    env.reset(options={"task": str(1 if right == "7.0" else 2)})
    assert env.step(f"<answer>{right}</answer>")[1] == 1.0


@pytest.mark.parametrize(
    ("reward", "told"),
    [
        ("raises", "ValueError: no such unit"),
        ("nothing", "must return True, False or a finite number, got 'None' for the answer '7' to the task"),
        ("nan", "got 'nan'"),
    ],
)
def test_a_reward_that_breaks_is_a_fault_of_one_episode(reward: str, told: str, own: Path) -> None:
    place = f"{own}/own.py:{reward}"
    with make_vec("turngym/Questions-v0", 2, data=str(own / "mine.jsonl"), reward=place, tools=()) as vector:
        vector.reset(seed=[1, 2])
        _, rewards, terminated, truncated, infos = vector.step(("<answer>7</answer>", "no call"))
        assert told in infos["fault"][0] and not infos["fault"][1] and rewards[0] == 0
        assert terminated[0] or truncated[0]
        assert not terminated[1] and not truncated[1]


def test_a_reward_sees_metadata_and_may_return_any_number(own: Path) -> None:
    for name, answer, reward in (("score", "a sum", 0.5), ("small", "x", 0.25), ("right", "8", 1.0)):
        env = Questions(str(own / "mine.jsonl"), reward=f"{own}/own.py:{name}")
        env.reset(seed=0)
        _, found, terminated, _, info = env.step(f"<answer>{answer}</answer>")
        assert (found, terminated, info["score"], info["success"]) == (reward, True, reward, int(reward >= 1))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tools": ("pyhton",)}, "tools has python, functions"),
        ({"tools": ("own.py:Loud",)}, "needs a unique name of lower-case letters, digits and _: rename it"),
        ({"tools": ("own.py:two",)}, "must take one text"),
        ({"tools": ("own.py:later",)}, "must be a plain function, got one with async or yield"),
        ({"tools": ("own.py:absent",)}, "has no 'absent'. Did you mean"),
        ({"reward": "own.py:two_texts"}, "own.py:two_texts must take a task and an answer: missing a required arg"),
        ({"reward": "own.py:later"}, "must be a plain function, got one with async or yield"),
        ({"reward": "own.py:absent"}, "has no 'absent'"),
        ({"reward": "own.py:scor"}, "has no 'scor'. Did you mean 'score'"),
        ({"reward": "numerc"}, "Did you mean 'numeric'"),
        ({"data": ""}, "data is empty"),
        ({"form": "plain", "tools": ("python",)}, "form plain has no syntax for tools"),
    ],
)
def test_wrong_options_are_named(
    options: dict[str, Any], told: str, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own)
    with (own / "own.py").open("a") as file:
        file.write(
            "\n\nasync def later(task, answer=''):\n    return 1\n\n\ndef two_texts(task, answer, other):\n    pass\n"
        )
    with pytest.raises((ConfigError, UnknownName), match=told):
        Questions(**{"data": "mine.jsonl", **options})


def test_windows_files_unicode_and_metadata_are_read(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    lines = ['{"question": "Grüße? 漢", "answer": 1e3, "metadata": {"n": 1.5}}', "", '{"prompt": "b\\ud800"}']
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    first, second = read_tasks(path)
    assert (first.instruction, first.answers, first.metadata) == ("Grüße? 漢", ("1e3",), {"n": 1.5})
    assert (second.id, second.answers) == ("3", ()) and second.instruction.isprintable()
    for content, told in (
        ('[{"question": "a"}]', r"q.jsonl, line 1: expected one JSON object, got a list"),
        ('{"question": "a", "answer": 1, "answer": 2}', "line 1: .*the key 'answer' is given twice"),
        (f'{{"question": "a", "metadata": {{"n": {"9" * 5000}}}}}', "line 1: .*Exceeds the limit"),
        ('{"question": "a", "metadata": 3}', "line 1: metadata must be an object"),
        ('{"question": "a", "anwser": 3}', "line 1: there is no key 'anwser'. Did you mean 'answer'"),
    ):
        path.write_text(content)
        with pytest.raises(ConfigError, match=told):
            read_tasks(path)
    with pytest.raises(ConfigError, match=f"^{tmp_path} is not a file: pass a file"):
        read_tasks(tmp_path)
    path.write_text('{"question": "a", "answer": ["b", " "]}')
    with pytest.raises(ConfigError, match="an answer of the task '1' is empty, which no reply equals: leave it out"):
        Questions(str(path))


def test_what_a_question_holds_is_its_identity(own: Path) -> None:
    env = Questions(str(own / "mine.jsonl"))
    env.reset(options={"task": env.tasks()[0]})
    before, saved = env.instance_hash, env.snapshot()
    text = (own / "mine.jsonl").read_text()
    (own / "mine.jsonl").write_text(text.replace('"kind": "sum"', '"kind": "sums"'))
    other = Questions(str(own / "mine.jsonl"))
    assert other.tasks() == env.tasks(), "the splits depend on questions alone"
    other.reset(options={"task": env.tasks()[0]})
    assert other.instance_hash != before
    with pytest.raises(ConfigError, match="snapshot"):
        other.restore(saved)


def test_a_data_set_needs_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtra, match="datasets"):
        Questions("hf:somebody/questions")


@pytest.mark.integration
def test_data_sets_of_hugging_face_are_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"question": f"{k}+1?", "answer": f"So it is {k + 1}.\n#### {k + 1}", "level": k % 3} for k in range(30)]
    one = datasets.Dataset.from_list(rows)
    one.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": one, "test": one.select([4])}).save_to_disk(str(tmp_path / "two"))
    env = Questions(f"hf:{tmp_path}/one")
    env.reset(seed=0)
    assert len(env.tasks()) == 24 and env.step(env.expert_action())[1] == 1.0 and "level" in env.task.metadata
    both = Questions(f"hf:{tmp_path}/two", split="test")
    assert both.tasks() == ("test-1",) and both.reset(seed=0)[0] == "Question: 4+1?"
    assert len(Questions(f"hf:{tmp_path}/two:train").tasks()) == 24
    with pytest.raises(ConfigError, match="no question of the split 'dev', only of test, train"):
        Questions(f"hf:{tmp_path}/two", split="dev")
    with pytest.raises(ConfigError, match=r"has no split 'tset'. Did you mean 'test'"):
        Questions(f"hf:{tmp_path}/two:tset")


def test_the_command_line_takes_data_as_an_environment() -> None:
    assert with_data(["--agent=x", "--tools", "python", "a.py:f", "--data=m.jsonl"])[-3:] == [
        "data=m.jsonl",
        "--option",
        'tools=["python", "a.py:f"]',
    ]
    words = ["--env-options", "attempts=2", "--data", "m.jsonl", "--reward", "numeric", "--seed", "1"]
    assert with_training_data(words) == [
        *("--seed", "1", "--env", "turngym/Questions-v0"),
        *("--env-options", "data=m.jsonl", "reward=numeric", "attempts=2"),
    ]
    assert with_training_data(["--env", "turngym/Sokoban-v0"]) == ["--env", "turngym/Sokoban-v0"]
    for wrong, told in (
        (["--reward", "numeric"], "--reward is for questions of your own: pass --data FILE"),
        (["--data", "a", "b"], "--data takes one value, got a b"),
        (["--data", "a", "--env", "b"], "two environments: leave one out"),
    ):
        with pytest.raises(ConfigError, match=told):
            with_training_data(wrong)
    with pytest.raises(ConfigError, match="--data and turngym/Sokoban-v0 are two environments: leave one out"):
        with_data(["turngym/Sokoban-v0", "--data", "m.jsonl"])


def test_it_is_registered_and_plays_without_options() -> None:
    env: Any = gymnasium.make("turngym/Questions-v0").unwrapped
    assert isinstance(env, Questions) and len(env.tasks()) == 24
    env.reset(seed=1)
    assert env.step(env.expert_action())[1] == 1.0


def test_the_commands_play_and_train_on_a_file(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(own)
    words = ["--data", "mine.jsonl", "--tools", "own.py:lookup", "--reward", "own.py:right"]
    assert main(["eval", *words, "--agent", "expert", "--split", "train", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["environments"].values()
    assert found["success"]["n_games"] == 24 and found["faults"]["value"] == 0
    config, folder, _ = parse_train([*words, "--iterations", "1"])
    options = {"data": "mine.jsonl", "reward": "own.py:right", "tools": ["own.py:lookup"]}
    assert (config.env, dict(config.env_options)) == ("turngym/Questions-v0", options)
    assert folder.name.startswith("mine-")
    assert main(["eval", "--data", "absent.jsonl", "--agent", "random"]) == 2
    assert "the file of questions 'absent.jsonl' cannot be read" in capsys.readouterr().err


def test_tools_are_declared_to_models_with_native_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN)
    env = Questions(tools=("own.py:lookup", "python"), max_turns=4, attempts=2, seconds=20)
    assert env.native_tools is not None and "<" not in env.native_tools.instructions
    declared = {tool["name"]: tool for tool in env.native_tools.tools}
    assert list(declared) == ["python", "lookup", "answer"]
    assert declared["lookup"]["description"] == "Look a word up."
    assert list(declared["python"]["parameters"]["properties"]) == ["code"]
    env.reset(seed=0)
    observation, _, _, _, info = env.step(write_call("lookup", {"text": "hat"}))
    assert "HAT" in observation and info["action_is_valid"]
    observation, _, _, _, info = env.step(write_call("lookup", {"text": 3}))
    assert "lookup: text must be string, got 3" in observation and not info["action_is_valid"]
    assert env.step(write_call("python", {"code": "print(6 * 7)"}))[0].count("42") == 1
    _, reward, terminated, _, info = env.step(write_call("answer", {"text": env.task.answers[0]}))
    assert reward == info["success"] == 1 and terminated
    env.close()


def test_questions_without_tools_or_tags_declare_none() -> None:
    assert all(Questions(**options).native_tools is None for options in ({}, {"form": "plain"}))
    assert Questions(form="json", tools=("textwrap:dedent",)).native_tools is None
