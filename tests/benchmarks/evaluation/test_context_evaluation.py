"""Evaluations of agents whose prompts do not fit: failures, counted apart and verified."""

import json
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from chat_servers import Body, Reply, agent_of, chat_server, request
from small import small_model

from turngym.__main__ import main
from turngym.agents.episodes.evaluate import evaluate
from turngym.agents.players.styled import styled
from turngym.benchmarks.verification.replay import replay_findings
from turngym.benchmarks.verification.verify import verify

LAKE = "turngym/FrozenLake-v0"
OPENAI = (
    b'{"error": {"message": "This model\'s maximum context length is 4096 tokens.", "code": "context_length_exceeded"}}'
)
LLAMA = (
    b'{"error": {"code": 400, "message": "request (9412 tokens) exceeds the available context size (8192 tokens), try '
    b'increasing it", "type": "exceed_context_size_error"}}'
)
WORDS = {
    "openai": Reply(status=400, raw=OPENAI),
    "vllm": Reply(status=400, raw=b"The decoder prompt (length 900) is longer than the maximum model length of 512."),
    "sglang": Reply(status=400, raw=b"The input (900 tokens) is longer than the model's context length (512 tokens)."),
    "llama.cpp": Reply(status=400, raw=LLAMA),
    "tgi": Reply(status=422, raw=b"`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 and 200"),
    "anthropic": Reply(status=400, raw=b'{"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}'),
    "gateway": Reply(raw=OPENAI),
}


@pytest.mark.parametrize("words", sorted(WORDS))
def test_what_servers_say_of_long_prompts_is_neither_a_fault_nor_a_lost_turn(words: str) -> None:
    with chat_server(lambda body: WORDS[words]) as server:
        agent = agent_of(server)
        [decision] = agent.act([request()])
        [reply] = styled(agent, "react").act([request()])  # another way to the same server
    assert len(server.requests) == 2, "asking again would not help"
    for answer in (decision, reply):
        assert answer.too_long.startswith("the prompt does not fit the model's context, says the server (")
        assert not answer.fault and not answer.action
    assert decision.usage is not None and decision.usage.lost == 0 and decision.usage.failures == {"context": 1}


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=429, raw=b"Request too large: tokens per min (TPM). Reduce the length of the messages."),
        Reply(status=400, raw=b"unknown field"),
        Reply("The maximum context length is 5. <action>up</action>"),
    ],
)
def test_other_words_are_not_taken_for_it(reply: Reply) -> None:
    with chat_server(lambda body: reply) as server:
        [decision] = agent_of(server, retries=0).act([request()])
    assert not decision.too_long


def forgetful(body: Body) -> Reply:
    """Have room for six messages."""
    return Reply("<action>left</action>") if len(body["messages"]) <= 6 else WORDS["openai"]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("eval") / "out"
    with chat_server(forgetful) as server:
        words = ["eval", LAKE, "--agent", f"openai:model@{server.url}", "--prompt", "fit=none"]
        assert main([*words, "--episodes", "4", "--out", str(path)]) == 0
    return path


def test_by_default_the_oldest_turns_are_left_out_and_the_output_and_the_results_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out"
    with chat_server(forgetful) as server:
        assert main(["eval", LAKE, "--agent", f"openai:model@{server.url}", "--episodes", "4", "--out", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(
        "prompts show the whole conversation; actions are native tool calls where the environment "
        "declares tools and the server takes them, else written in the environment's own notation,"
    )
    assert {row["status"] for row in rows_of(path)} == {"ok"}
    config = json.loads((path / "config.json").read_text("utf8"))
    assert config["prompts"].startswith("the whole conversation;")
    assert config["sampling"]["prompt"] == {"mode": "conversation"} and config["sampling"]["format"] == "auto"
    usage = json.loads((path / "results.json").read_text("utf8"))["usage"]
    refused = usage["failures"]["context"]
    assert usage["shortened"] > 10 > refused and f"{usage['shortened']} prompts without some" in " ".join(
        printed.split()
    )
    assert max(len(body["messages"]) for body in server.requests) <= 8, "what was refused once is not tried again"
    with chat_server(forgetful) as server:
        words = ["eval", LAKE, "--agent", f"openai:model@{server.url}", "--prompt", "history=2", "--format", "tag"]
        assert main([*words, "--episodes", "4", "--out", str(tmp_path / "other")]) == 0
    capsys.readouterr()
    assert main(["compare", str(path), str(tmp_path / "other")]) == 0
    told = capsys.readouterr().out
    for name, pair in (
        ("format", "'auto' and 'tag'"),
        ("mode", "'conversation' and 'window'"),
        ("history", "'0' and '2'"),
    ):
        assert f"The prompts differ in {name}: {pair}." in told


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "episodes.jsonl").read_text("utf8").splitlines()]


def test_an_episode_whose_prompt_does_not_fit_is_a_failure_of_its_own_kind(evaluated: Path) -> None:
    rows = rows_of(evaluated)
    cut = [row for row in rows if row["status"] == "context"]
    assert len(rows) == 4 and cut
    assert all((row["success"], row["score"], row["length"], row["fault"]) == (0, 0.0, 3, "") for row in cut)
    assert all(row["truncated"] and not row["terminated"] for row in cut)
    assert "says the server" in cut[0]["truncation_detail"]
    results = json.loads((evaluated / "results.json").read_text("utf8"))["environments"][LAKE]
    assert results["context"] == {"value": len(cut), "n_games": 4, "higher_is_better": False}
    assert results["success"]["n_games"] == 4 and results["faults"]["value"] == 0


def test_such_a_submission_is_replayed_and_accepted(evaluated: Path) -> None:
    found = verify(evaluated, replay=1)
    assert found.label == "replayed" and not found.findings
    assert any(
        "the next prompt did not fit the model's context, which counts as failed" in note for note in found.notes
    )


@pytest.mark.parametrize("changes", [{"success": 1}, {"score": 1.0}, {"terminated": True}, {"truncated": False}])
def test_what_such_an_episode_cannot_claim(changes: dict[str, Any], evaluated: Path, tmp_path: Path) -> None:
    path = tmp_path / "edited"
    path.mkdir()
    for file in evaluated.iterdir():
        if file.is_file():
            (path / file.name).write_bytes(file.read_bytes())
    rows = rows_of(evaluated)
    next(row for row in rows if row["status"] == "context").update(changes)
    (path / "episodes.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows), "utf8")
    assert "end" in {each.name for each in verify(path, replay=1).findings}


@pytest.mark.parametrize("is_over", [False, True])
def test_an_episode_that_the_environment_ended_cannot_be_told_as_cut(is_over: bool, evaluated: Path) -> None:
    row = next(row for row in rows_of(evaluated) if row["status"] == "context")
    env = gymnasium.make(LAKE, **row["options"])
    if is_over:
        row["actions"] = ["left"] * env.get_wrapper_attr("max_turns")
    assert ("replay-end" in {finding.name for finding in replay_findings(env, row)}) == is_over


def test_a_model_in_this_process_is_evaluated_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_model().save(tmp_path / "model")
    words = ["eval", LAKE, "--agent", f"hf:{tmp_path / 'model'}", "--prompt", "mode=conversation"]
    limits = ["--prompt", "max_prompt_tokens=900", "--max-new-tokens", "2", "--episodes", "2"]
    assert main([*words, *limits, "--out", str(tmp_path / "out")]) == 0
    assert {row["status"] for row in rows_of(tmp_path / "out")} <= {"context", "ok"}
    assert "a prompt did not fit, which counts as a failure" in " ".join(capsys.readouterr().out.split())


def test_an_evaluation_in_which_no_first_prompt_fits_counts_every_episode() -> None:
    with chat_server(lambda body: WORDS["vllm"]) as server:
        result, played = evaluate(LAKE, agent_of(server), episodes=3)
    assert (result.context, result.faults, result.success.value, result.success.count) == (3, 0, 0.0, 3)
    assert all(trajectory.truncation_reason == "context" and not trajectory.turns for trajectory in played)
