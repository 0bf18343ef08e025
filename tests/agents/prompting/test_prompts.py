"""Prompts: windows, conversations that keep every sampled token, templates that rewrite the past."""

import datetime
from typing import Self

import pytest
from small import TEXTS, small_model

from turngym.agents.prompt_text import DATE
from turngym.agents.prompting.prompts import Memory, PastTurn, PromptBuilder, PromptConfig
from turngym.benchmarks.cli.options.prompts import prompt_settings
from turngym.errors import ConfigError, PromptWarning
from turngym.wrappers.actions.action_format import action_format

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


DATED = (
    "{{ strftime_now('%d %b %Y') }}"
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def dated(date: str = DATE) -> PromptBuilder:
    model = small_model()
    with pytest.warns(PromptWarning, match="writes a date into prompts: .*date=YYYY-MM-DD"):
        return PromptBuilder(model.tokenizer, PromptConfig(chat_template=DATED, date=date), model.stop_ids)


def test_prompts_do_not_depend_on_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Self:
            return cls(2031, 5, 6)

    before = dated().prompt(Memory(), "a wall", {}, "")
    monkeypatch.setattr("transformers.utils.chat_template_utils.datetime", Later)
    after = dated()
    assert after.prompt(Memory(), "a wall", {}, "") == before
    assert str(after.encoder.tokenizer.decode(list(before))).startswith("01 Jan 2025")
    other = dated("2026-07-08")
    ids = other.prompt(Memory(), "a wall", {}, "")
    assert str(other.encoder.tokenizer.decode(list(ids))).startswith("08 Jul 2026")


def test_today_is_kept_as_the_day_that_it_was() -> None:
    today = datetime.date.today().isoformat()
    assert PromptConfig(date="today").date >= today
    assert prompt_settings(["date=today"])["date"] >= today
    with pytest.raises(ConfigError, match="date must be today or YYYY-MM-DD, got 'soon'"):
        PromptConfig(date="soon")


def test_a_model_whose_template_begins_thinking_has_no_action_before_it_ends() -> None:
    model = small_model()
    template = DATED.replace("{{ strftime_now('%d %b %Y') }}", "").replace(
        "'<|assistant|>'", "'<|assistant|><think>\\n'"
    )
    made = PromptBuilder(model.tokenizer, PromptConfig(chat_template=template), model.stop_ids)
    tag = action_format("tag")
    assert tag.read("<action>up</action>", made.thinking) is None
    assert tag.read("hm</think><action>up</action>", made.thinking) == "up"
    shown = str(model.tokenizer.decode(list(made.answer("<action>up</action>"))))
    assert tag.read(shown, made.thinking) == "up"


def test_marks_of_thinking_that_only_the_template_knows() -> None:
    model = small_model()
    template = (
        "{% for m in messages %}{{ '<|' + m.role + '|>' }}{% if m.reasoning_content %}"
        "{{ '<muse>' + m.reasoning_content + '</muse>' }}{% endif %}{{ m.content + '<|end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    )
    made = PromptBuilder(model.tokenizer, PromptConfig(chat_template=template), model.stop_ids)
    assert made.thinking.marks[0] == ("<muse>", "</muse>")
    assert action_format("tag").read("<muse><action>up</action>", made.thinking) is None
