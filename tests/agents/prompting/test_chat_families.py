"""Templates of well-known families: with a role for the system or without, with thinking, append-only or not."""

import json
from pathlib import Path

import pytest
from chat_model_folders import FAMILIES, family_folder, family_model

from turngym.__main__ import main
from turngym.agents.prompting.chat_template import ChatTemplate
from turngym.agents.prompting.prompts import Memory, PastTurn, PromptBuilder, PromptConfig
from turngym.errors import ConfigError, PromptWarning

each_family = pytest.mark.parametrize("name", FAMILIES)
quiet = pytest.mark.filterwarnings("ignore::turngym.errors.PromptWarning")


def builder(name: str, **config: object) -> PromptBuilder:
    model = family_model(name)
    return PromptBuilder(model.tokenizer, PromptConfig(**config), model.stop_ids)  # type: ignore[arg-type]


def text_of(made: PromptBuilder, ids: tuple[int, ...]) -> str:
    return str(made.encoder.tokenizer.decode(list(ids), skip_special_tokens=False))


@quiet
@each_family
@pytest.mark.parametrize("mode", ["window", "conversation"])
def test_every_family_is_shown_rules_and_observations(name: str, mode: str) -> None:
    made = builder(name, mode=mode)
    first = made.prompt(Memory(), "a wall", {}, "Push boxes.", "Say it.")
    assert all(part in text_of(made, first) for part in ("Push boxes.", "Say it.", "a wall"))
    if mode == "conversation":
        answer = tuple(made.encoder.tokenizer.encode("up", add_special_tokens=False))
        second = made.prompt(Memory(ids=first + answer), "a door", {}, "Push boxes.", "Say it.")
        assert second[: len(first + answer)] == first + answer and "a door" in text_of(made, second[len(first) :])


def test_a_template_without_a_system_role_gets_the_rules_in_the_first_message_and_it_is_told() -> None:
    made = builder("gemma")
    with pytest.warns(PromptWarning, match="no role for the system") as told:
        for observation in ("a wall", "a door"):
            ids = made.prompt(Memory(), observation, {}, "Push boxes.", "Say it.")
    assert len(told) == 1
    shown = f"Push boxes.\nSay it.\n\n{observation}"
    assert text_of(made, ids) == f"<bos><start_of_turn>user\n{shown}<end_of_turn>\n<start_of_turn>model\n"


def test_variables_of_the_template() -> None:
    plain, without = builder("qwen"), builder("qwen", template={"enable_thinking": False})
    ids = plain.prompt(Memory(), "a wall", {}, ""), without.prompt(Memory(), "a wall", {}, "")
    assert text_of(without, ids[1]) == text_of(plain, ids[0]) + "<think>\n\n</think>\n\n"


@quiet
def test_a_system_text_and_a_template_of_ones_own() -> None:
    template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[{{ name }}] "
    own = {"chat_template": template, "template": {"name": "you"}, "system": "Be brief. {rules} {format}"}
    made = builder("llama", **own)
    text = text_of(made, made.prompt(Memory(), "a wall", {}, "Push boxes.", "Say it."))
    assert text == "[system] Be brief. Push boxes. Say it.\n[user] a wall\n[you] "


@pytest.mark.parametrize(
    "template", ["{{ messages[9].content.x.y }}", "{% for m in messages %}{{ m.content }}", "{{ 1 }}"]
)
def test_a_template_that_cannot_be_used_is_told(template: str) -> None:
    with pytest.raises(ConfigError, match="chat_template=FILE"):
        builder("llama", chat_template=template)


def test_thinking_is_kept_as_sampled_or_stripped() -> None:
    said = "<think>It is above me.</think>\n<action>up</action>"
    kept = builder("qwen", mode="conversation")
    first = kept.prompt(Memory(), "a wall", {}, "")
    ids = first + tuple(kept.encoder.tokenizer.encode(said, add_special_tokens=False))
    assert said in text_of(kept, kept.prompt(Memory([PastTurn("a wall", said)], ids), "a door", {}, ""))
    model = family_model("qwen")
    from turngym.agents.core import Request
    from turngym.agents.models.agent import ModelAgent

    for config, shown in (
        ({"mode": "conversation", "thinking": "strip"}, "assistant\n<action>up</action><|im_end|>"),
        ({"mode": "window", "history": 1}, "Your action: up\n"),
        ({"mode": "window", "history": 1, "thinking": "keep"}, f"Your action: {said}\n"),
        ({"mode": "window", "history": 1, "thinking": "strip"}, "Your action: up\n"),
    ):
        agent = ModelAgent(model, lambda *_: [], PromptConfig(**config))
        agent.remember(Request(0, 0, 0, "a wall", {}, ""), "up", said, (), ids)
        text = text_of(kept, agent.final_prompt(Request(0, 0, 1, "a door", {}, "")))
        assert shown in text and "a wall" in text and "a door" in text
        assert ("above" in text) == (config.get("thinking") == "keep")


@quiet
@each_family
def test_eval_plays_every_family(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = family_folder(name, tmp_path / name)
    template = tmp_path / "own.jinja"
    template.write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{{ start }}")
    options = [
        [],
        ["--prompt", "template.enable_thinking=false", "--prompt", "system=Be brief. {rules}"],
        ["--prompt", f"chat_template={template}", "--prompt", "template.start=you:"],
        ["--prompt", "mode=conversation", "--prompt", "thinking=strip", "--server", "device=cpu"],
    ]
    command = ["eval", "turngym/Sokoban-v0", "--agent", f"hf:{folder}", "--episodes", "1", "--json"]
    for more in options:
        quick = ["--max-new-tokens", "2", "--option", "max_turns=2", "--num-envs", "1"]
        assert main([*command, *quick, *more]) == 0
        assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("template.messages=1", "template.messages is set by turngym itself"),
        ("chat_template=nowhere.jinja", "cannot be read"),
        ("thinking=maybe", "'auto', 'keep', 'strip'"),
        ("templat.x=1", "KEY=VALUE"),
    ],
)
def test_wrong_settings_of_prompts_are_told_in_a_line(
    option: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", "turngym/Sokoban-v0", "--agent", "hf:nowhere", "--prompt", option]) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_template_that_cannot_append_is_told_before_anything_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = family_folder("qwen", tmp_path / "qwen")
    run, template = tmp_path / "run", tmp_path / "own.jinja"
    template.write_text("{{ messages[-1].content }}")
    options = ["--model", str(folder), "--run-dir", str(run), "--rollout.prompt.mode", "conversation"]
    own = ["--rollout.prompt.chat-template", template.read_text()]
    assert main(["train", *options, *own, "--warmup.models", "any"]) == 2
    assert "use prompt mode 'window'" in capsys.readouterr().err
    assert not run.exists()


@quiet
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_adapters_train_with_a_weight_a_precision_and_a_device(precision: str, tmp_path: Path) -> None:
    folder, run = family_folder("gemma", tmp_path / "gemma"), tmp_path / "run"
    quick = ["--iterations", "1", "--rollout.groups", "1", "--rollout.group-size", "2", "--evaluation.episodes", "1"]
    options = ["--lora-rank", "2", "--lora-alpha", "3", "--precision", precision, "--device", "cpu"]
    options += ["--evaluation.every", "0", "--rollout.max-new-tokens", "2", "--env-options", "max_turns=2"]
    template = ["--rollout.prompt.template", "enable_thinking=false", "--rollout.prompt.thinking", "keep"]
    assert main(["train", "--model", str(folder), "--run-dir", str(run), *quick, *options, *template]) == 0
    config = json.loads((run / "config.json").read_text())
    assert (config["lora_alpha"], config["precision"], config["device"]) == (3, precision, "cpu")
    assert config["rollout"]["prompt"]["template"] == {"enable_thinking": False}


@pytest.mark.parametrize("device", ["gpu", "cuda:77"])
def test_a_device_that_is_not_there_is_told(device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--device", device, "--run-dir", str(tmp_path / "run")]) == 2
    assert "cannot be used here" in capsys.readouterr().err


def test_the_probe_of_a_template_is_no_part_of_a_prompt() -> None:
    template = ChatTemplate(family_model("llama").tokenizer, PromptConfig())
    assert template.has_system and "probe" not in template.render([("user", "a wall")], True)
