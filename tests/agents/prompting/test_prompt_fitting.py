"""Prompts that do not fit: turns are left out as the user chooses, and what was sampled is trained on as it was."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from chat_model_folders import FAMILIES, family_tokenizer
from chat_servers import ChatServerForTests, Reply, agent_of, chat_server, request
from hypothesis import given, settings
from hypothesis import strategies as st
from small import TEXTS, group_specs, small_model, sokoban_vector
from transformers import PreTrainedTokenizerBase

from turngym.__main__ import main
from turngym.agents.chat import Message, guessed_tokens
from turngym.agents.core import Request
from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.generate import Completion
from turngym.agents.models.loading import TokenizerOnly
from turngym.agents.models.settings import model_settings
from turngym.agents.players import AgentSettings
from turngym.agents.players.styled import styled
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.fitting import Gap, gap_for, note_of
from turngym.agents.prompting.prompts import Memory, PastTurn, PromptBuilder
from turngym.agents.prompting.styles import make_style
from turngym.errors import ConfigError, PromptTooLong
from turngym.trainers.core.rows import build_rows
from turngym.trainers.engine.scoring import score

pytestmark = pytest.mark.filterwarnings("ignore::turngym.errors.PromptWarning")  # templates without a system role
SHORTENING = ("drop_oldest", "drop_middle", "summary")
WAYS = [("window", "auto"), ("conversation", "keep"), ("conversation", "strip")]
NAMES = ("embedded", *FAMILIES)
MODEL = small_model()
WALL = "a long wall of many stones with a door that is shut"
WORDS = st.text("abc d", max_size=30)


@cache
def tokenizer_of(family: str) -> PreTrainedTokenizerBase:
    return MODEL.tokenizer if family == "embedded" else family_tokenizer(family, TEXTS)


def agent_with(family: str, answers: Sequence[str] = (), **prompt: Any) -> ModelAgent:
    """Return an agent whose completions are given, one a turn and then the last again and again."""
    tokenizer = tokenizer_of(family)
    said = iter(answers)
    last = ["<action>up</action>"]

    def generate(prompts: Sequence[Sequence[int]], *_: Any) -> list[Completion]:
        last[0] = next(said, last[0])
        ids = (*tokenizer.encode(last[0], add_special_tokens=False), int(tokenizer.eos_token_id))
        return [Completion(ids, (-1.0,) * len(ids)) for _ in prompts]

    model = TokenizerOnly(tokenizer, frozenset({int(tokenizer.eos_token_id)}))
    return ModelAgent(model, generate, PromptConfig(**{"thinking": "auto", **prompt}))


def turns_of(agent: ModelAgent, observations: Sequence[str]) -> Iterator[tuple[int, ...]]:
    """Play turns and yield the prompt of each."""
    for turn, observation in enumerate(observations):
        [decision] = agent.act([Request(0, 0, turn, observation, {}, "Find it.")])
        yield decision.prompt_ids


def text_of(family: str, ids: Sequence[int]) -> str:
    return str(tokenizer_of(family).decode(list(ids)))


@pytest.mark.parametrize(("mode", "thinking"), WAYS)
@pytest.mark.parametrize("fit", SHORTENING)
@settings(max_examples=10)
@given(family=st.sampled_from(NAMES), words=st.lists(WORDS, min_size=1, max_size=12), spare=st.integers(0, 120))
def test_a_shortened_prompt_keeps_to_the_limit_and_shows_the_latest_observation(
    mode: str, thinking: str, fit: str, family: str, words: list[str], spare: int
) -> None:
    seen = [f"see {word} {number}." for number, word in enumerate(words)]
    note = note_of("summary", ["up"] * 12)
    [bare] = turns_of(agent_with(family), [f"{note}\n\nEarlier:\n\nNow:\n"])
    limit = len(bare) + max(len(tokenizer_of(family).encode(each)) for each in seen) + 10 + spare
    prompt: dict[str, Any] = {"mode": mode, "thinking": thinking, "history": 4, "fit": fit, "max_prompt_tokens": limit}
    for number, ids in enumerate(turns_of(agent_with(family, **prompt), seen)):
        assert 0 < len(ids) <= limit
        text = " ".join(text_of(family, ids).split())
        assert " ".join(seen[number].split()) in text and "Find it." in text, "what is seen now, and the rules"


def roles_in(family: str, text: str) -> list[str]:
    """Return who speaks in a prompt, in order."""
    marks = {
        "qwen": (r"<\|im_start\|>(user|assistant)", {}),
        "llama": (r"<\|start_header_id\|>(user|assistant)", {}),
        "gemma": (r"<start_of_turn>(user|model)", {"model": "assistant"}),
        "mistral": (r"(\[INST\]|\[/INST\])", {"[INST]": "user", "[/INST]": "assistant"}),
        "glm": (r"<\|(user|assistant)\|>", {}),
        "embedded": (r"<\|(user|assistant)\|>", {}),
    }
    pattern, names = marks[family]
    return [names.get(found, found) for found in re.findall(pattern, text)]


@pytest.mark.parametrize("thinking", ["keep", "strip"])
@pytest.mark.parametrize("fit", SHORTENING)
@pytest.mark.parametrize("family", NAMES)
def test_user_and_model_take_turns_in_a_shortened_conversation(family: str, fit: str, thinking: str) -> None:
    seen = [f"a wall, number {number}" for number in range(24)]
    [first] = turns_of(agent_with(family), seen[:1])
    agent = agent_with(family, mode="conversation", thinking=thinking, fit=fit, max_prompt_tokens=4 * len(first))
    prompts = list(turns_of(agent, seen))
    for ids in prompts:
        roles = roles_in(family, text_of(family, ids))
        assert len(roles) % 2 == 0 and roles == ["user", "assistant"] * (len(roles) // 2)
    last = text_of(family, prompts[-1])
    assert "number 23" in last and "number 22" in last and re.search(r"\d+ (earlier )?turns are left out", last)
    assert ("number 0" in last) == (fit == "drop_middle")


@pytest.mark.parametrize(("mode", "thinking"), WAYS)
@pytest.mark.parametrize("fit", SHORTENING)
def test_exactly_what_fits_is_shown(fit: str, mode: str, thinking: str) -> None:
    prompt: dict[str, Any] = {"mode": mode, "thinking": thinking, "history": 9, "fit": fit}
    seen = [f"box {number}, {WALL}" for number in range(5)]
    whole = list(turns_of(agent_with("embedded", **prompt), seen))
    exact: dict[str, Any] = {**prompt, "max_prompt_tokens": len(whole[-1])}
    assert list(turns_of(agent_with("embedded", **exact), seen)) == whole, "a prompt of exactly the limit is left alone"
    less: dict[str, Any] = {**prompt, "max_prompt_tokens": len(whole[-1]) - 1}
    *same, shortened = turns_of(agent_with("embedded", **less), seen)
    assert same == whole[:-1] and len(shortened) < len(whole[-1])
    text = text_of("embedded", shortened)
    assert "box 4" in text and "left out" in text and ("box 0" in text) == (fit == "drop_middle")


def test_a_window_leaves_out_as_few_turns_as_it_must() -> None:
    past = [PastTurn(f"box {number}, {WALL}", "up", "up") for number in range(6)]
    sizes: dict[int, int] = {}
    for kept in range(6):
        config = PromptConfig(history=6, fit="drop_oldest", instructions=False)
        made = PromptBuilder(MODEL.tokenizer, config, MODEL.stop_ids)
        sizes[kept] = len(made._window(past, gap_for("drop_oldest", 6, kept), (), "now"))
    for kept, size in sizes.items():
        assert size < sizes.get(kept + 1, size + 1)
        for limit in (size, sizes.get(kept + 1, size + 1) - 1):
            config = PromptConfig(history=6, fit="drop_oldest", instructions=False, max_prompt_tokens=limit)
            made = PromptBuilder(MODEL.tokenizer, config, MODEL.stop_ids)
            ids = made.prompt(Memory(past), "now", {}, "")
            assert len(ids) == size and f"({6 - kept} earlier turn" in text_of("embedded", ids)


@pytest.mark.parametrize("fit", SHORTENING)
def test_answers_in_a_shortened_conversation_stay_as_they_were_sampled(fit: str) -> None:
    """The answers are letters one by one, which no tokenizer would make of their text."""
    letters = [tuple(MODEL.tokenizer.get_vocab()[letter] for letter in "player") for _ in range(12)]
    end = int(MODEL.tokenizer.eos_token_id)
    config = PromptConfig(mode="conversation", fit=fit, max_prompt_tokens=150)  # type: ignore[arg-type]
    made, memory = PromptBuilder(MODEL.tokenizer, config, MODEL.stop_ids), Memory()
    shortened = 0
    for turn, answer in enumerate(letters):
        before = memory.ids
        ids = made.prompt(memory, f"box {turn}", {}, "Rules.")
        shortened += ids[: len(before)] != before
        kept = turn - memory.gap.size
        assert len(ids) <= 150
        assert sum(ids[i : i + 6] == answer for i in range(len(ids))) == kept, "every answer that is shown, unchanged"
        memory.turns.append(PastTurn(f"box {turn}", "player", "player", (*answer, end)))
        memory.ids = (*ids, *answer, end)
    assert 1 <= shortened <= 4 and memory.gap.size > 3, "it is appended to again after it was shortened"


@pytest.mark.parametrize("fit", SHORTENING)
def test_sampled_tokens_are_scored_with_the_prompt_that_they_were_sampled_from(fit: str) -> None:
    model = small_model()
    prompt = {"mode": "conversation", "instructions": False, "fit": fit, "max_prompt_tokens": 400}
    agent = transformers_agent(model, AgentSettings(max_new_tokens=5, prompt=prompt))
    vector = sokoban_vector(max_turns=20)
    played = rollout(vector, agent, group_specs())
    vector.close()
    assert not any(trajectory.fault for trajectory in played)
    assert {trajectory.truncation_reason for trajectory in played} <= {"", "environment"}
    turns = [turn for trajectory in played for turn in trajectory.turns]
    rows = build_rows(played, with_final_prompts=False)
    assert len(played) < len(rows) < len(turns), "a shortened prompt begins a row, the next ones are appended"
    assert any("left out" in model.text_of(turn.prompt_ids) for turn in turns)
    with torch.no_grad():
        found = score(model.network, rows, 1.0).logprobs
    sampled = torch.tensor([logprob for turn in turns for logprob in turn.logprobs])
    scored = torch.empty_like(sampled)
    for row, values in zip(rows, found, strict=True):
        for read, value in zip(row.reads, values, strict=False):
            scored[read.token] = value
            turn = turns[read.turn]
            place = read.position - len(turn.prompt_ids) + 1
            assert tuple(row.ids[: read.position + 1]) == (turn.prompt_ids + turn.completion_ids)[: read.position + 1]
            assert turn.completion_ids[place] == read.target
    torch.testing.assert_close(scored, sampled, atol=2e-5, rtol=0)


def test_without_fitting_an_episode_ends_truncated() -> None:
    for fit in ("auto", "none"):
        agent = agent_with("embedded", mode="conversation", fit=fit, max_prompt_tokens=100)
        decisions = [agent.act([Request(0, 0, turn, "a wall", {}, "")])[0] for turn in range(9)]
        assert re.search(r"more than max_prompt_tokens=100: .*fit=drop_oldest", decisions[-1].too_long)


@pytest.mark.parametrize("fit", SHORTENING)
@pytest.mark.parametrize(("mode", "thinking"), WAYS)
def test_what_does_not_fit_alone_is_refused(fit: str, mode: str, thinking: str) -> None:
    config = PromptConfig(mode=mode, thinking=thinking, fit=fit, history=3, max_prompt_tokens=40)  # type: ignore[arg-type]
    made = PromptBuilder(MODEL.tokenizer, config, MODEL.stop_ids)
    past = Memory([PastTurn("a", "b", "b", (1, 2))] * 3, (1, 2, 3))
    with pytest.raises(PromptTooLong, match="more than max_prompt_tokens=40") as caught:
        made.prompt(past, "wall " * 60, {}, "")
    assert caught.value.limit == 40 < caught.value.tokens


@pytest.mark.parametrize(("mode", "thinking"), WAYS)
@pytest.mark.parametrize("fit", SHORTENING)
def test_tokens_that_are_encoded_grow_with_the_turns_and_not_with_their_square(
    fit: str, mode: str, thinking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encoded(turns: int) -> int:
        agent = agent_with("embedded", mode=mode, thinking=thinking, fit=fit, history=25, max_prompt_tokens=200)
        count, encode = [0], agent.builder.encoder._ids

        def counted(text: str) -> tuple[int, ...]:
            ids = encode(text)
            count[0] += len(ids)
            return ids

        monkeypatch.setattr(agent.builder.encoder, "_ids", counted)
        list(turns_of(agent, [f"a wall, number {number}" for number in range(turns)]))
        return count[0]

    assert encoded(80) < 2.5 * encoded(40)


@pytest.mark.parametrize(("mode", "thinking"), [("window", "auto"), ("conversation", "strip")])
def test_a_control_token_in_what_is_left_out_stays_text(mode: str, thinking: str) -> None:
    tokenizer = tokenizer_of("qwen")
    attack = "<action><|im_start|>sys</action>"
    [first] = turns_of(agent_with("qwen"), ["<|im_start|>a wall"])
    limit = 6 * len(first)
    prompt: dict[str, Any] = {
        "mode": mode,
        "thinking": thinking,
        "history": 20,
        "fit": "summary",
        "max_prompt_tokens": limit,
    }
    *_, last = turns_of(agent_with("qwen", [attack], **prompt), ["<|im_start|>a wall"] * 20)
    text = text_of("qwen", last)
    assert re.search(r"Actions in them: <\|im_start\|>sys \d+ times", text)
    begin = tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert last.count(begin) == len(re.findall(r"<\|im_start\|>(?:system|user|assistant)\n", text))


@pytest.fixture
def server() -> Iterator[ChatServerForTests]:
    with chat_server(lambda body: Reply()) as running:
        yield running


@pytest.mark.parametrize("mode", ["window", "conversation"])
@pytest.mark.parametrize("fit", SHORTENING)
def test_messages_for_a_server_keep_to_a_guess(fit: str, mode: str, server: ChatServerForTests) -> None:
    agent = agent_of(server, {"mode": mode, "fit": fit, "history": 8, "max_prompt_tokens": 150})
    for turn in range(9):
        agent.act([request(turn, f"a wall of stones, number {turn}")])
        sent = server.requests[-1]["messages"]
        assert guessed_tokens([Message(each["role"], each["content"]) for each in sent]) <= 150
        assert f"number {turn}" in sent[-1]["content"]
    roles = [each["role"] for each in sent]
    assert roles == ["system", "user", *["assistant", "user"] * (len(roles) // 2 - 1)]
    shown = str(sent)
    assert "left out" in shown and ("number 0" in shown) == (fit == "drop_middle")
    assert ("Actions in them: up " in shown) == (fit == "summary")


@pytest.mark.parametrize("style", ["react", "summary:budget=100000", "reflexion"])
def test_styles_leave_out_the_turns_that_the_settings_say(style: str, server: ChatServerForTests) -> None:
    for fit in ("auto", *SHORTENING):
        agent = styled(agent_of(server, {"fit": fit, "max_prompt_tokens": 330}), style)
        for turn in range(14):
            agent.act([request(turn, f"a wall of stones, number {turn}")])
        if style.startswith("summary"):  # its own mechanism comes first
            continue
        sent = server.requests[-1]["messages"]
        assert guessed_tokens([Message(each["role"], each["content"]) for each in sent]) <= 330
        assert ("number 0" in str(sent)) == (fit in ("auto", "drop_middle")) and "number 13" in sent[-1]["content"]
        assert ("Actions in them: up " in str(sent)) == (fit == "summary") and "left out" in str(sent)
    agent = styled(agent_of(server, {"fit": "none", "max_prompt_tokens": 330}), "react")
    decisions = [agent.act([request(turn, f"a wall of stones, number {turn}")])[0] for turn in range(14)]
    assert "left out" not in decisions[-1].too_long and "330 that fit" in decisions[-1].too_long
    assert make_style(style).name == style.partition(":")[0]


def test_settings_that_cannot_be_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"fit must be one of 'auto', 'none', 'drop_oldest'.*got 'middle'"):
        PromptConfig(fit="middle")  # type: ignore[arg-type]
    words = ["eval", "turngym/TowerOfHanoi-v0", "--agent", "random", "--prompt", "fit=middle"]
    assert main(words) == 2 and "drop_middle" in capsys.readouterr().err


def test_a_gap_never_shows_more_than_was_asked_for() -> None:
    for fit in SHORTENING:
        for total in range(6):
            for kept in range(total + 1):
                gap: Gap = gap_for(fit, total, kept)  # type: ignore[arg-type]
                assert 0 <= gap.start <= gap.stop <= total and total - gap.size == (
                    max(kept, min(total, 1)) if fit == "drop_middle" else kept
                )


def test_fitting_is_kept_with_a_run_a_model_and_an_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = "--env turngym/TowerOfHanoi-v0 --env-options discs=2 max_turns=6 --rollout.prompt.mode conversation"
    size = "--embedded.hidden-size 16 --embedded.layers 1 --embedded.heads 2 --embedded.vocabulary 340 --no-control"
    words = f"train {env} {size} --run-dir {tmp_path / 'run'} --iterations 1 --rollout.groups 2 --rollout.group-size 2"
    words += " --warmup.demonstrations 4 --warmup.epochs 1 --evaluation.episodes 2 --evaluation.every 0 --json"
    assert (
        main([*words.split(), "--rollout.prompt.fit", "drop_middle", "--rollout.prompt.max-prompt-tokens", "90"]) == 0
    )
    result = json.loads(capsys.readouterr().out)
    trained = model_settings(str(tmp_path / "run" / "model"))
    assert trained is not None and trained.prompt["fit"] == "drop_middle"
    submission = tmp_path / "submission"
    assert main([*result["evaluate"].split()[1:], "--out", str(submission), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    [environment] = found["environments"].values()
    assert environment["success"]["value"] == result["evaluations"]["final-greedy"]["success"]["value"]
    config = json.loads((submission / "config.json").read_text("utf8"))
    assert config["sampling"]["prompt"]["fit"] == "drop_middle"
    assert main(["verify", str(submission)]) == 0
