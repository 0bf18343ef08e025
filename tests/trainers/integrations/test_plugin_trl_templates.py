"""Conversations are append-only with every chat template that TRL ships, and calls that it writes are read back."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest
from chat_model_folders import Family, tokenizer_of
from tool_templates import check_calls, check_results, words_of
from transformers import PreTrainedTokenizerFast

from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.chat_template import RENDER_ERRORS, ChatTemplate, Said
from turngym.agents.prompting.prompts import Memory, PromptBuilder

_FOUND = importlib.util.find_spec("trl")
TEMPLATES = [
    path
    for folder in (_FOUND.submodule_search_locations or [] if _FOUND else [])
    for path in sorted(Path(folder, "chat_templates").glob("*.jinja"))
]
pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not TEMPLATES, reason="trl is in .venvs/plugins only: run make test-integration"),
]
MARK = re.compile(r"<[|｜]?[^<>\s{}'\"]{1,40}[|｜]?>|\[/?[A-Z_]+\]")
ANSWER = "\u241fanswer\u241f"
SEEN, SAID = ("a wall", "a door", "a key"), ("<action>up</action>", "<action>left</action>")
each_template = pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)


@cache
def tokenizer(path: Path) -> PreTrainedTokenizerFast:
    """Return a tokenizer with a template whose control tokens are all marks that the template writes."""
    text = path.read_text("utf8")
    special = tuple(dict.fromkeys(mark for mark in MARK.findall(text) if mark not in ("<s>", "</s>")))
    return tokenizer_of(Family(text, "</s>", special, begin="<s>"))


@cache
def end_of_answer(path: Path) -> str:
    """Return the first mark after an answer in a conversation that continues."""
    template = ChatTemplate(tokenizer(path), PromptConfig())
    for said in (ANSWER, f"<think>\n-\n</think>\n\n{ANSWER}"):
        try:
            text = template.render([("user", "-"), ("assistant", said), ("user", "-")], True)
        except RENDER_ERRORS:
            continue
        if found := MARK.search(text.partition(ANSWER)[2]):
            return found.group()
    raise AssertionError(f"{path.stem} shows no answer")


def conversation(path: Path, ends: bool) -> tuple[PromptBuilder, list[tuple[int, ...]]]:
    """Return the prompts of three turns, each checked to continue the one before with the answer as it was sampled."""
    words = tokenizer(path)
    end = words.get_vocab()[end_of_answer(path)]
    stops = frozenset({int(words.eos_token_id), end})
    made = PromptBuilder(words, PromptConfig(mode="conversation", instructions=False), stops)
    prompts: list[tuple[int, ...]] = []
    memory = Memory()
    for turn, seen in enumerate(SEEN):
        prompts.append(made.prompt(memory, seen, {}, ""))
        assert prompts[-1][: len(memory.ids)] == memory.ids
        assert seen in words.decode(list(prompts[-1][len(memory.ids) :]))
        if turn < len(SAID):
            memory = Memory(ids=(*prompts[-1], *made.answer(SAID[turn]), *([end] if ends else [])))
    return made, prompts


def messages(turns: int) -> list[Said]:
    """Return the conversation as it is when the user has spoken so many times."""
    found: list[Said] = [("user", SEEN[0])]
    for said, seen in zip(SAID, SEEN[1:], strict=True):
        found += [("assistant", said), ("user", seen)]
    return found[: 2 * turns - 1]


def keeps_answers(path: Path) -> bool:
    """Return whether a template writes a longer conversation by appending to a shorter one and its answer."""
    template = ChatTemplate(tokenizer(path), PromptConfig())
    texts = [template.render(messages(turns), True) for turns in (1, 2, 3)]
    return all(
        longer.startswith(shorter + said) for shorter, longer, said in zip(texts[:-1], texts[1:], SAID, strict=True)
    )


@each_template
@pytest.mark.parametrize("ends", [True, False], ids=["ended", "cut off"])
def test_prompts_append_to_what_was_sampled(path: Path, ends: bool) -> None:
    conversation(path, ends)


@each_template
def test_the_text_is_the_templates_where_it_appends_itself(path: Path) -> None:
    if not keeps_answers(path):
        pytest.skip("the template rewrites earlier answers")
    made, prompts = conversation(path, ends=True)
    expected = ChatTemplate(tokenizer(path), PromptConfig()).render(messages(3), True)
    assert made.encoder.tokenizer.decode(list(prompts[-1])) == expected


def test_many_templates_append_themselves() -> None:
    assert 2 * sum(map(keeps_answers, TEMPLATES)) > len(TEMPLATES)


@each_template
def test_calls_are_read_back_equal_or_the_start_warns(path: Path) -> None:
    check_calls(words_of(path.read_text("utf8")))


@each_template
def test_new_messages_stand_behind_a_call_as_the_template_writes_them(path: Path) -> None:
    check_results(words_of(path.read_text("utf8")))


def test_most_templates_write_calls_that_are_read() -> None:
    templates = [path.read_text("utf8") for path in TEMPLATES]
    about_calls = [text for text in templates if "message.tool_calls" in text or "message['tool_calls']" in text]
    assert sum(map(check_calls, map(words_of, about_calls))) > 0.9 * len(about_calls)
