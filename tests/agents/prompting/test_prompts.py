"""Prompts: windows, conversations that keep every sampled token, templates that rewrite the past."""

import pytest
from small import TEXTS, small_model

from turngym.agents.prompting.prompts import Memory, PastTurn, PromptBuilder, PromptConfig
from turngym.errors import ConfigError

MODEL = small_model()
INFO = {"legal_actions": ("up", "down")}


def builder(**config: object) -> PromptBuilder:
    return PromptBuilder(MODEL.tokenizer, PromptConfig(**config), MODEL.stop_ids)  # type: ignore[arg-type]


def text_of(ids: tuple[int, ...]) -> str:
    return str(MODEL.tokenizer.decode(list(ids)))


def test_a_window_shows_rules_last_turns_and_the_observation() -> None:
    memory = Memory(turns=[PastTurn("old", "left"), PastTurn("newer", "right")])
    text = text_of(builder(history=1).prompt(memory, "now", INFO, "Rules.", "Say it."))
    assert (
        text == "<|system|>Rules.\nSay it.<|end|>"
        "<|user|>Earlier:\nnewer\nYour action: right\n\nNow:\nnow<|end|><|assistant|>"
    )


def test_without_history_and_instructions_only_the_observation_is_shown() -> None:
    text = text_of(builder(instructions=False).prompt(Memory(turns=[PastTurn("old", "left")]), "now", INFO, "Rules."))
    assert text == "<|user|>now<|end|><|assistant|>"


def test_legal_actions_are_shown_only_when_asked_for() -> None:
    assert "up, down" not in text_of(builder().prompt(Memory(), "now", INFO, ""))
    assert "now\nLegal actions: up, down" in text_of(builder(legal_actions=True).prompt(Memory(), "now", INFO, ""))


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_conversation_keeps_the_sampled_tokens(is_closed: bool) -> None:
    """The completion is one that no tokenizer would produce: bytes one by one. Re-tokenising it would merge them."""
    conversation = builder(mode="conversation")
    first = conversation.prompt(Memory(), "first", INFO, "Rules.", "Say it.")
    sampled = tuple(MODEL.tokenizer.get_vocab()[letter] for letter in "player")
    assert sampled != tuple(MODEL.tokenizer.encode("player"))
    completion = sampled + ((MODEL.tokenizer.eos_token_id,) if is_closed else ())
    second = conversation.prompt(Memory(ids=first + completion), "second", INFO, "Rules.", "Say it.")
    assert second[: len(first + completion)] == first + completion
    start = "<|system|>Rules.\nSay it.<|end|><|user|>first<|end|><|assistant|>player<|end|>"
    assert text_of(second) == f"{start}<|user|>second<|end|><|assistant|>"


def test_unknown_mode_and_negative_history_are_refused() -> None:
    with pytest.raises(ConfigError, match="got 'chat'"):
        PromptConfig(mode="chat")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="got -1"):
        PromptConfig(history=-1)


def test_the_tokenizer_gives_back_every_text() -> None:
    for text in [*TEXTS, "漢字 🙂\n\t\\", "<|end|>", ""]:
        assert MODEL.tokenizer.decode(MODEL.tokenizer.encode(text)) == text
