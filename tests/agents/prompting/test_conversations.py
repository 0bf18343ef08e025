"""Conversations are append-only with every chat template, and an episode is one sequence to train on."""

import json
from pathlib import Path

import pytest
from chat_model_folders import FAMILIES, family_folder, family_model
from chat_shapes import SHAPES, Shape, shape_model
from small import agent_of, sokoban_vector

from turngym.__main__ import main
from turngym.agents.chat_client.prompts import ServerPrompts
from turngym.agents.core import Request
from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.settings import model_settings
from turngym.agents.players import make_agent
from turngym.agents.prompting.prompts import Memory, PastTurn, PromptBuilder, PromptConfig
from turngym.agents.trajectory import EpisodeSpec, Turn
from turngym.envs.parsing.thinking import THINKING
from turngym.errors import ConfigError
from turngym.trainers.core.rows import build_rows
from turngym.wrappers.actions.action_format import action_format

pytestmark = pytest.mark.filterwarnings("ignore::turngym.errors.PromptWarning")
each_shape = pytest.mark.parametrize("name", SHAPES)
MODELS = [*(f"family {name}" for name in FAMILIES), *(f"shape {name}" for name in SHAPES)]
SINGLE_TURN = "{{ '<|im_start|>' + messages[-1].content + '<|im_end|>' }}"
NO_USER_AFTER_ANSWERS = (
    "{% for m in messages %}{% if m.role == 'assistant' and not loop.last %}{{ raise_exception('one turn only') }}"
    "{% endif %}{{ m.content }}{% endfor %}"
)


def model_of(name: str) -> LanguageModel:
    kind, _, name = name.partition(" ")
    return family_model(name) if kind == "family" else shape_model(name)


def builder_of(model: LanguageModel) -> PromptBuilder:
    return PromptBuilder(model.tokenizer, PromptConfig(mode="conversation"), model.stop_ids)


def ids_of(model: LanguageModel, text: str) -> tuple[int, ...]:
    """Return the ids of a text in the middle of another one."""
    start = model.tokenizer.eos_token
    return tuple(model.tokenizer.encode(start + text, add_special_tokens=False)[1:])


def after(shape: Shape, model: LanguageModel, end: str, seen: str) -> str:
    """Return what follows an answer with an end token, as text."""
    builder = builder_of(model)
    first = builder.prompt(Memory(), "a wall", {}, "Push boxes.")
    ids = first + ids_of(model, "up" + end)
    second = builder.prompt(Memory([PastTurn("a wall", "up")], ids), seen, {}, "Push boxes.")
    assert second[: len(ids)] == ids
    anchor = model.tokenizer.eos_token_id
    return model.text_of((anchor, *second[len(ids) :])).removeprefix(str(model.tokenizer.eos_token))


@each_shape
def test_what_follows_an_answer_is_the_templates_own(name: str) -> None:
    shape, model = SHAPES[name], shape_model(name)
    seen = "a door <|im_end|> <|end|> </s>"
    for end, follows in {"": shape.follows, **shape.ended}.items():
        assert after(shape, model, end, seen) == follows.replace("SEEN", seen), end


@each_shape
def test_every_prompt_begins_with_the_tokens_before_it(name: str) -> None:
    """The answers are bytes that no tokenizer would produce, and end in every possible way."""
    model = shape_model(name)
    builder, memory = builder_of(model), Memory()
    letters = tuple(int(model.tokenizer.get_vocab()[letter]) for letter in "player")
    assert letters != ids_of(model, "player")
    for turn, end in enumerate([(), *((stop,) for stop in sorted(model.stop_ids))]):
        prompt = builder.prompt(memory, f"wall number {turn}", {}, "Push boxes.")
        assert prompt[: len(memory.ids)] == memory.ids
        assert f"wall number {turn}" in model.tokenizer.decode(list(prompt[len(memory.ids) :]))
        memory.ids = prompt + letters + end
        memory.turns.append(PastTurn(f"wall number {turn}", "player", ids=letters + end))


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.answer])
def test_templates_that_keep_answers_are_followed_to_the_token(name: str) -> None:
    shape, model = SHAPES[name], shape_model(name)
    builder, memory = builder_of(model), Memory()
    said = [{"role": "system", "content": "Push boxes."}] if builder.template.has_system and shape.system else []
    rules = "" if not said else "Push boxes."
    for turn in range(4):
        said.append({"role": "user", "content": f"wall {turn}"})
        prompt = builder.prompt(memory, f"wall {turn}", {}, rules)
        own = builder.template.render([(message["role"], message["content"]) for message in said], True)
        assert prompt == tuple(model.tokenizer.encode(own, add_special_tokens=False))
        memory.ids = prompt + ids_of(model, shape.answer)
        memory.turns.append(PastTurn(f"wall {turn}", "up"))
        said.append({"role": "assistant", "content": "up"})


@pytest.mark.parametrize("name", MODELS)
def test_an_episode_is_one_sequence_to_train_on(name: str) -> None:
    vector = sokoban_vector(2)
    try:
        agent = agent_of(model_of(name), "conversation", max_prompt_tokens=100_000)
        agent.context = 0
        played = rollout(vector, agent, [EpisodeSpec(k, k, k) for k in range(2)])
    finally:
        vector.close()
    assert all(len(trajectory.turns) == 4 for trajectory in played)
    rows = build_rows(played, with_final_prompts=True)
    assert len(rows) == len(played)
    assert sum(len(row.reads) for row in rows) >= sum(len(t.completion_ids) for each in played for t in each.turns)


def test_a_clock_in_the_template_stands_still_and_is_sent_once() -> None:
    model = shape_model("channels, two ends, a clock")
    texts = {builder_of(model).prompt(Memory(), "a wall", {}, "") for _ in range(2)}
    assert len(texts) == 1
    assert all(b"Now: 00:00:00.000000" in str(model.tokenizer.decode(list(ids))).encode() for ids in texts)
    builder = builder_of(model)
    ids = (*builder.prompt(Memory(), "a wall", {}, ""), model.tokenizer.eos_token_id)
    second = builder.prompt(Memory([PastTurn("a wall", "")], ids), "a door", {}, "")
    assert "Now:" not in model.text_of(second[len(ids) :])


def test_turns_are_numbered_by_the_templates_count() -> None:
    model = shape_model("numbered turns")
    builder, memory = builder_of(model), Memory()
    for turn in range(4):
        memory.ids = builder.prompt(memory, "a wall", {}, "") + ids_of(model, "up</s>")
        memory.turns.append(PastTurn("a wall", "up"))
        assert f"[Round {turn + 1}]" in model.tokenizer.decode(list(memory.ids))
        assert model.tokenizer.decode(list(memory.ids)).count("[Round") == turn + 1


@pytest.mark.parametrize("template", [SINGLE_TURN, NO_USER_AFTER_ANSWERS])
def test_a_template_that_cannot_continue_is_refused_in_words(template: str) -> None:
    model = family_model("llama")
    wanted = "cannot continue a conversation.*no message of the user after an answer.*prompt mode 'window'"
    with pytest.raises(ConfigError, match=wanted):
        PromptBuilder(model.tokenizer, PromptConfig(mode="conversation", chat_template=template), model.stop_ids)
    PromptBuilder(model.tokenizer, PromptConfig(mode="window", chat_template=template), model.stop_ids)


@pytest.mark.parametrize("thinking", ["auto", "strip"])
def test_an_evaluation_makes_the_choice_of_the_run(thinking: str, tmp_path: Path) -> None:
    folder, run = family_folder("qwen", tmp_path / "qwen"), tmp_path / "run"
    quick = ["--iterations", "1", "--rollout.groups", "1", "--rollout.group-size", "2", "--evaluation.every", "0"]
    small = ["--evaluation.episodes", "1", "--rollout.max-new-tokens", "4", "--env-options", "max_turns=3"]
    prompt = ["--rollout.prompt.mode", "conversation", "--rollout.prompt.thinking", thinking]
    assert main(["train", "--model", str(folder), "--run-dir", str(run), *quick, *small, *prompt]) == 0
    stored = json.loads((run / "config.json").read_text())["rollout"]["prompt"]
    trained = model_settings(str(run / "model"))
    assert trained is not None
    assert trained.prompt["thinking"] == stored["thinking"] == thinking
    agent = make_agent(f"hf:{run / 'model'}")
    assert isinstance(agent, ModelAgent)
    assert (agent.prompt.mode, agent.prompt.thinking) == ("conversation", thinking)


THINKING_IN_A_CHANNEL_IS_STRIPPED: list[tuple[str, str]] = [
    ("<|channel|>analysis<|message|>Above.<|end|><|start|>assistant<|channel|>final<|message|>up", "up"),
    ("<|channel|>analysis<|message|>Above, or", ""),
    ("<|channel|>final<|message|>up", "up"),
    ("<|channel>thought\nAbove.\n<channel|>up", "up"),
    ("<seed:think>Above.</seed:think>up", "up"),
    ("\u25c1think\u25b7Above.\u25c1/think\u25b7up", "up"),
    ("<think>Above.</think>\n\nup", "up"),
    ("Above.</think>up", "up"),
    ("[THINK]Above, or", ""),
]


def test_thinking_in_a_channel_is_stripped() -> None:
    for completion, rest in THINKING_IN_A_CHANNEL_IS_STRIPPED:
        assert THINKING.without(completion) == rest


@pytest.mark.parametrize(
    ("format", "completion", "kept"),
    [
        ("tag", "<think>hm</think> <action>say <think>a</think></action>", "<action>say <think>a</think></action>"),
        ("tag", "<action>up</action> <think>or <action>left</action>", "<action>up</action> "),
        ("boxed", "\\boxed{<think>a</think>}", "\\boxed{<think>a</think>}"),
        ("json", '{"action": "</think>"}', '{"action": "</think>"}'),
        ("auto", '<python>"<think>a</think>"</python>', '<python>"<think>a</think>"</python>'),
    ],
)
def test_history_without_thinking_shows_actions_as_they_were_written(format: str, completion: str, kept: str) -> None:
    """Where a server, a model, and an episode that branches remember an answer."""
    config = PromptConfig(mode="conversation", thinking="strip")
    request = Request(0, 0, 0, "a wall", {}, "", finds_action=format == "auto")
    prompts = ServerPrompts(config, lambda request: action_format(format, request.finds_action), escape=False)
    prompts.messages(request)
    prompts.remember(request, completion, "")
    assert prompts.memories[0].turns[0].answer == kept
    agent = ModelAgent(family_model("qwen"), lambda *_: [], config, format=format)
    agent.remember(request, "", completion, (), ())
    agent.recall(1, [Turn("a wall", "", "", completion, (), ())])
    assert [agent._memories[episode].turns[0].answer for episode in (0, 1)] == [kept, kept]
