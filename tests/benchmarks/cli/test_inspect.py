"""Inspect AI and lm-evaluation-harness themselves: what they read of our exports, and our suites as Inspect's tasks.

Run by ``make test-integration`` in an environment of its own, ``.venvs/inspect``.
"""

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_servers import Body, ChatServerForTests, Reply, chat_server

from turngym.__main__ import main
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
inspect_log = pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed: make test-integration")

SCORES = {"success": "success", "score": "score", "returns": "return"}
ENTRIES = (
    SuiteEntry("turngym/FrozenLake-v0", episodes=2),
    SuiteEntry("turngym/GuessTheNumber-v0", {"high": 9, "max_turns": 4}, episodes=2),
    SuiteEntry("turngym/TicTacToeSeat-v0", episodes=2),
    SuiteEntry("turngym/FrozenLake-v0", {"max_turns": 3}, episodes=2, wrappers=("history:k=2",)),
)
SUITES.register("small-inspect")(Suite("small-inspect", 3, "Four environments, for these tests.", ENTRIES))


@pytest.fixture(autouse=True)
def streams_that_inspect_leaves_open() -> Iterator[None]:
    """Let what Inspect does not close be collected where warnings of it are passed over."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of an evaluation of the suite with two attempts at each task."""
    path = tmp_path_factory.mktemp("evaluations") / "random"
    words = ["eval", "turngym-core", "--agent", "random", "--episodes", "1", "--repeats", "2"]
    assert main([*words, "--out", str(path)]) == 0
    return path


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "episodes.jsonl").read_text("utf8").splitlines()]


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_inspect_reads_every_score_of_an_exported_log(ending: str, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / f"log.{ending}"
    assert main(["export", str(folder), "--format", "inspect", "--out", str(file)]) == 0
    log = inspect_log.read_eval_log(str(file))
    assert (log.version, log.status, log.eval.task) == (2, "success", "turngym-core")
    samples = {(sample.id, sample.epoch): sample for sample in log.samples}
    rows = rows_of(folder)
    assert len(samples) == len(rows) == 36 == log.results.total_samples
    for row in rows:
        sample = samples[f"{row['label']}:{row['task']}", row["attempt"] + 1]
        assert {key: sample.scores[name].value for key, name in SCORES.items()} == {key: row[key] for key in SCORES}
        said = [message.text for message in sample.messages if message.role == "assistant"]
        assert said == row["actions"], "the random agent writes its action alone"
    told = json.loads((folder / "results.json").read_text())
    scores = {score.name: score.metrics for score in log.results.scores}
    assert scores["success"]["all"].value == told["mean"]["value"]
    for label, numbers in told["environments"].items():
        for metric in ("success", "score", "pass@2"):
            assert scores[metric][label].value == numbers[metric]["value"]
            assert scores[metric][f"{label} stderr"].value == numbers[metric]["stderr"]


def test_inspect_lists_the_samples_of_a_zip_and_reads_one_alone(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "log.eval"
    assert main(["export", str(folder), "--format", "inspect", "--out", str(file)]) == 0
    assert len(inspect_log.read_eval_log_sample_summaries(str(file))) == 36
    assert inspect_log.read_eval_log(str(file), header_only=True).samples is None
    row = rows_of(folder)[7]
    sample = inspect_log.read_eval_log_sample(str(file), id=f"{row['label']}:{row['task']}", epoch=row["attempt"] + 1)
    assert sample.metadata["transcript_sha256"] == row["transcript_sha256"]


def test_inspect_writes_back_what_it_read(folder: Path, tmp_path: Path) -> None:
    file, again = tmp_path / "log.json", tmp_path / "again.eval"
    assert main(["export", str(folder), "--format", "inspect", "--out", str(file)]) == 0
    inspect_log.write_eval_log(inspect_log.read_eval_log(str(file)), str(again))
    one, other = (inspect_log.read_eval_log(str(each)) for each in (file, again))
    key = lambda sample: (sample.id, sample.epoch)  # noqa: E731
    ours, theirs = sorted(one.samples, key=key), sorted(other.samples, key=key)
    assert [sample.scores for sample in ours] == [sample.scores for sample in theirs]
    assert one.results == other.results


def test_asciinema_plays_a_recording(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("asciinema", reason="asciinema is not installed: make test-integration")
    assert main(["export", str(folder), "--format", "asciicast", "--out", str(tmp_path / "recordings")]) == 0
    files = sorted((tmp_path / "recordings").iterdir())
    assert len(files) == 36
    played = subprocess.run([sys.executable, "-m", "asciinema", "cat", str(files[0])], capture_output=True, check=True)
    events = [json.loads(line) for line in files[0].read_text().splitlines()[1:]]
    assert played.stdout.decode() == "".join(text for _, _, text in events) != ""


def test_lm_eval_validates_and_tabulates_an_export(folder: Path, tmp_path: Path) -> None:
    utils = pytest.importorskip("lm_eval.utils", reason="lm-eval is not installed: make test-integration")
    from lm_eval.result_schema import EvalResults, SampleResult
    from pydantic import TypeAdapter

    assert main(["export", str(folder), "--format", "lm-eval", "--out", str(tmp_path)]) == 0
    names = [str(file) for file in tmp_path.rglob("*")]
    latest = utils.get_latest_filename(utils.get_results_filenames(names))
    results = json.loads(Path(latest).read_text("utf8"))
    TypeAdapter(EvalResults).validate_python(results)
    told = json.loads((folder / "results.json").read_text())
    table = utils.make_table(results)
    for label, numbers in told["environments"].items():
        assert label in table
        task = results["results"][next(k for k, v in results["results"].items() if v["alias"] == label)]
        assert task["success,none"] == numbers["success"]["value"]
        assert task["score_stderr,none"] == numbers["score"]["stderr"]
    heads, _, *lines = (
        [cell.strip() for cell in line.split("|")] for line in utils.make_table(results, "groups").splitlines()
    )
    (shown,) = (dict(zip(heads, cells, strict=True)) for cells in lines)
    assert (shown["Groups"], shown["Metric"]) == ("turngym-core", "success")
    assert float(shown["Value"]) == pytest.approx(told["mean"]["value"], abs=5e-5)
    samples = utils.get_sample_results_filenames(names)
    assert {utils.get_file_task_name(Path(n).name) for n in samples} == set(results["n-samples"])
    assert {utils.get_file_datetime(Path(n).name) for n in samples} == {Path(latest).stem.partition("_")[2]}
    count = 0
    for name in samples:
        for line in Path(name).read_text("utf8").splitlines():
            TypeAdapter(SampleResult).validate_json(line)
            count += 1
    assert count == 36


# Suites as Inspect's tasks.


def wanderer(body: Body) -> Reply:
    """Answer with a move that the length of the conversation decides."""
    return Reply(f"<action>{('down', 'right', 'up')[len(body['messages']) // 2 % 3]}</action>")


@pytest.fixture
def server() -> Iterator[ChatServerForTests]:
    with chat_server(wanderer) as running:
        yield running


def own_results(tmp_path: Path, agent: str, *words: str) -> dict[str, Any]:
    """Return label and task -> row of our own evaluation of the suite."""
    out = tmp_path / "own"
    assert main(["eval", "small-inspect", "--agent", agent, "--out", str(out), *words]) == 0
    mean = json.loads((out / "results.json").read_text())["mean"]["value"]
    return {"": mean, **{f"{row['label']}:{row['task']}": row for row in rows_of(out)}}


def check_equal(log: Any, own: dict[str, Any]) -> None:
    assert log.status == "success", log.error
    assert len(log.samples) == 8 and log.eval.task_version == 3
    for sample in log.samples:
        row = own[sample.id]
        (score,) = sample.scores.values()
        assert score.value == {name: row[key] for key, name in SCORES.items()}
        assert sample.store["turngym"]["actions"] == row["actions"]
    found = {each.name: each for each in log.results.scores}
    assert found["success"].metrics["grouped_all"].value == pytest.approx(own[""])


def test_inspect_plays_a_suite_against_a_server_as_we_do(server: ChatServerForTests, tmp_path: Path) -> None:
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import get_model

    from turngym.benchmarks.inspect_tasks import TASKS

    words = ["--prompt", "mode=conversation"]
    own = own_results(tmp_path, f"openai:model@{server.url}", *words)
    ours = [body["messages"] for body in server.requests]
    server.requests.clear()
    model = get_model("openai-api/local/model", base_url=server.url, api_key="none")
    task = TASKS["small_inspect"]()
    (log,) = inspect_eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none", max_connections=4)
    check_equal(log, own)
    theirs = [body["messages"] for body in server.requests]

    def texts(prompts: list[Any]) -> list[str]:
        return sorted(json.dumps([[m["role"], m["content"]] for m in prompt]) for prompt in prompts)

    assert texts(theirs) == texts(ours), "the model is shown the same, turn by turn"


def test_inspect_plays_a_suite_with_its_mock_model(tmp_path: Path) -> None:
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from turngym.benchmarks.inspect_tasks import suite

    def silent(*asked: Any) -> Any:
        output = ModelOutput.from_content("mock", "no action here")
        output.usage = ModelUsage()  # else it counts tokens with a vocabulary that it downloads
        return output

    task, model = suite("small-inspect"), get_model("mockllm/model", custom_outputs=silent)
    (log,) = inspect_eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none", epochs=2)
    assert log.status == "success" and len(log.samples) == 16
    own = own_results(tmp_path, "scripted:no action here")
    for sample in log.samples:
        (score,) = sample.scores.values()
        assert score.value["success"] == own[sample.id]["success"]


def test_a_limit_of_inspect_ends_a_sample_and_its_outcome_counts(server: ChatServerForTests, tmp_path: Path) -> None:
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import get_model

    from turngym.benchmarks.inspect_tasks import suite

    model = get_model("openai-api/local/model", base_url=server.url, api_key="none")
    options: dict[str, Any] = {"log_dir": str(tmp_path), "display": "none", "message_limit": 5}
    (log,) = inspect_eval(suite("small-inspect", episodes=1), model=model, **options)
    assert log.status == "success" and all(len(s.store["turngym"]["actions"]) <= 2 for s in log.samples)
    assert any(sample.limit is not None for sample in log.samples)


@pytest.mark.parametrize("name", ["turngym/turngym_core", "file"])
def test_the_command_line_of_inspect_finds_the_tasks(name: str, server: ChatServerForTests, tmp_path: Path) -> None:
    source = Path(__file__).parents[3] / "benchmarks" / "inspect_tasks.py"
    target = f"{source}@suite" if name == "file" else name
    command = [sys.executable, "-m", "inspect_ai", "eval", target, "-T", "episodes=1", "--message-limit", "6"]
    command += ["--model", "openai-api/local/model", "--model-base-url", server.url]
    environment = {**os.environ, "INSPECT_LOG_DIR": str(tmp_path), "INSPECT_DISPLAY": "plain", "LOCAL_API_KEY": "none"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (file,) = tmp_path.glob("*.eval")
    log = inspect_log.read_eval_log(str(file))
    assert log.status == "success" and len(log.samples) == 18 and server.requests
