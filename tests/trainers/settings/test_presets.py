"""Presets: what a model needs by its size, picked without loading it; the settings on Sokoban stay as they were."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from chat_model_folders import family_folder
from transformers import AutoConfig, AutoModelForCausalLM

from turngym.__main__ import main
from turngym.agents.models.loading import load_model
from turngym.agents.models.settings import model_settings
from turngym.agents.models.size import parameter_count
from turngym.benchmarks.cli.train import parse_train
from turngym.errors import ConfigError, ModelError
from turngym.trainers.algorithms import ALGORITHMS, build, parts
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.presets import (
    MAIN_SETTINGS,
    PRESETS,
    SETTINGS,
    preset_for,
    preset_table,
    preset_warning,
    with_preset,
)

ROOT = Path(__file__).parents[3]
QWEN = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "num_hidden_layers": 24,
    "tie_word_embeddings": True,
    "vocab_size": 151936,
}
"""Shape of a well-known model of 494 M parameters."""


def folder_of_size(folder: Path, parameters: int, shards: int = 1) -> Path:
    """Write a model folder of that size: real headers, and weights that take no room on the disk."""
    family_folder("llama", folder)
    (folder / "model.safetensors").unlink()
    rows, rest = divmod(parameters, 1000 * shards)
    assert not rest
    names = (
        ["model.safetensors"] if shards == 1 else [f"model-{i:05}-of-{shards:05}.safetensors" for i in range(shards)]
    )
    for name in names:
        tensor = {"dtype": "BF16", "shape": [rows, 1000], "data_offsets": [0, 2000 * rows]}
        header = json.dumps({"__metadata__": {"format": "pt"}, f"{name}.weight": tensor}).encode()
        with (folder / name).open("wb") as stream:
            stream.write(len(header).to_bytes(8, "little") + header)
            stream.truncate(8 + len(header) + 2000 * rows)
    if shards > 1:
        index = {"metadata": {}, "weight_map": {f"{name}.weight": name for name in names}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def value_of(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = getattr(config, name)
    return config


def known_of(found: Any, recorded: Any) -> Any:
    """Return what was found, without the settings that were not there when the others were recorded."""
    if not isinstance(recorded, dict):
        return found
    return {key: known_of(found[key], value) for key, value in recorded.items()}


def test_the_settings_on_sokoban_are_what_they_were() -> None:
    """Recorded from the version before there were presets, but for ``auto``: every setting of run and method."""
    recorded = json.loads((ROOT / "tests" / "golden" / "quickstart.json").read_text("utf8"))
    config = parse_train(["--env", "turngym/Sokoban-v0"])[0]
    settings = json.loads(json.dumps(config.as_json()))
    method = dataclasses.asdict(build(config.algorithm, config.algorithm_options).config)
    assert {key: method[key] for key in recorded["gigpo"]} == recorded["gigpo"]
    recorded["settings"]["algorithm_options"] = settings["algorithm_options"]
    assert known_of(settings, recorded["settings"]) == recorded["settings"]


def test_the_quickstart_gives_every_method_what_a_small_model_needs() -> None:
    for name in sorted(ALGORITHMS):
        config = with_preset(TrainConfig(algorithm=name), "quickstart")
        base, kind = parts(name)[0]
        if not hasattr(kind, "entropy_coef"):  # distillation: a loss without policy gradient
            assert config.algorithm_options == {}
            continue
        method = kind(**config.algorithm_options.get(base, {}))
        assert (method.entropy_coef, method.invalid_penalty) == (0.01, 0.1)
        assert method.kl_coef == {"nash_md": 0.1}.get(name, 0.0), "a part of that method"
        assert method.dual_clip == {"cispo": 0.0, "dapo": 10.0, "gmpo": 0.0, "gspo": 0.0}.get(name, 3.0)
        assert with_preset(TrainConfig(algorithm=name), "small").algorithm_options == {}, "the method's own defaults"


def test_the_settings_of_the_quickstart_are_those_of_the_classes() -> None:
    assert with_preset(TrainConfig(), "quickstart") == dataclasses.replace(
        TrainConfig(), algorithm_options=with_preset(TrainConfig(), "quickstart").algorithm_options
    )


def option(name: str, value: Any) -> list[str]:
    """Return a setting of a run as it is written on the command line."""
    dashed = name.replace("_", "-")
    if not isinstance(value, bool):
        return [f"--{dashed}", str(value)]
    head, dot, last = dashed.rpartition(".")
    return [f"--{head}{dot}{last}" if value else f"--{head}{dot}no-{last}"]


@pytest.mark.parametrize("preset", PRESETS)
def test_the_settings_of_a_preset_reach_the_run_unless_they_are_given(preset: Any) -> None:
    of_run = [setting for setting in SETTINGS if not setting.name.startswith("method.")]
    config = parse_train(["--preset", preset])[0]
    assert {each.name: value_of(config, each.name) for each in of_run} == {
        each.name: each.value(preset) for each in of_run
    }
    others = {each.name: other for each in of_run for other in map(each.value, PRESETS) if other != each.value(preset)}
    words = [word for name, value in others.items() for word in option(name, value)]
    for argv in (["--preset", preset, *words], [*words, "--preset", preset]):
        config = parse_train(argv)[0]
        assert {name: value_of(config, name) for name in others} == others


def test_options_of_the_method_win_over_a_preset() -> None:
    config = parse_train(["--gigpo.entropy-coef", "0.5", "--gigpo.dual-clip", "0"])[0]
    assert build("gigpo", config.algorithm_options).config.entropy_coef == 0.5
    assert build("gigpo", config.algorithm_options).config.dual_clip == 0.0
    given = TrainConfig(algorithm_options={"gigpo": {"entropy_coef": 0.5}})
    assert with_preset(given, "quickstart").algorithm_options["gigpo"]["entropy_coef"] == 0.5


@pytest.mark.parametrize(
    ("parameters", "shards", "words", "preset", "says"),
    [
        (300_000, 1, (), "quickstart", "300,000"),
        (494_000_000, 1, (), "small", "494 M parameters, at most 1.3 B"),
        (1_236_000_000, 2, (), "small", "1.24 B"),
        (1_544_000_000, 1, (), "large", "1.54 B parameters, more than 1.3 B"),
        (8_030_000_000, 2, (), "large", "128 GB"),
        (8_030_000_000, 2, ("--lora-rank", "8"), "lora", "low-rank adapters were asked for, and the model has 8.03 B"),
        (8_030_000_000, 1, ("--lora-rank", "0"), "large", "8.03 B"),
        (494_000_000, 1, ("--preset", "large"), "large", "it was asked for"),
    ],
)
def test_the_preset_is_picked_by_the_size_of_the_model(
    parameters: int, shards: int, words: tuple[str, ...], preset: str, says: str, tmp_path: Path
) -> None:
    model = folder_of_size(tmp_path / "model", parameters, shards)
    assert parameter_count(str(model)) == parameters
    config = parse_train(["--model", str(model), *words])[0]
    assert config.preset == preset
    assert says.replace("300,000", "0.3 M") in config.preset_reason
    assert config.rollout.prompt.instructions == (preset != "quickstart")


def test_a_model_without_safetensors_is_counted_by_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN))
    assert parameter_count(str(tmp_path)) == 494_032_768
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(str(tmp_path)))
    assert sum(each.numel() for each in network.parameters()) == 494_032_768
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 40)
    assert parameter_count(str(tmp_path)) == 494_032_768, "a broken header"


def test_a_small_model_is_counted_as_it_is_loaded(tmp_path: Path) -> None:
    folder = family_folder("qwen", tmp_path / "model")
    assert parameter_count(str(folder)) == load_model(str(folder)).network.num_parameters()


@pytest.mark.parametrize("source", ["/nowhere", "./nowhere", "nobody/no-model"])
def test_a_model_that_is_not_there_is_refused(source: str) -> None:
    with pytest.raises(ModelError, match=r"nowhere|nobody/no-model"):
        parameter_count(source)


def test_an_unknown_preset_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"no preset 'smal'\. Did you mean 'small'"):
        with_preset(TrainConfig(), "smal")
    with pytest.raises(ConfigError, match=r"preset must be one of .*, got 'smal'\. Did you mean 'small'"):
        TrainConfig(preset="smal")  # type: ignore[arg-type]
    assert main(["train", "--preset", "smal"]) == 2
    assert "small" in capsys.readouterr().err


def test_a_run_of_python_with_settings_of_another_size_is_warned_of() -> None:
    assert "1.24 B parameters: the preset small is made for it" in preset_warning(TrainConfig(), 1_236_000_000)
    assert not preset_warning(with_preset(TrainConfig(), "small"), 1_236_000_000)
    assert "the preset lora" in preset_warning(TrainConfig(lora_rank=4), 1_236_000_000)
    assert preset_for(309_000).name == "quickstart"


def test_a_run_says_its_preset_and_keeps_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = family_folder("llama", tmp_path / "model")
    words = f"train --env turngym/TowerOfHanoi-v0 --env-options discs=2 max_turns=3 --model {model} --preset small"
    words += f" --run-dir {tmp_path / 'run'} --iterations 1 --rollout.groups 2 --rollout.group-size 2 --json"
    words += " --rollout.max-new-tokens 4 --evaluation.episodes 2 --evaluation.every 0"
    assert main(words.split()) == 0
    found = capsys.readouterr()
    result = json.loads(found.out)
    assert result["preset"] == {"name": "small", "reason": "it was asked for"} and result["finished"]
    said = "preset small (it was asked for): 4 new tokens a turn, rules in prompts, learning rate 1e-06, no time limit"
    assert said in found.err.replace("\n", " ") and result["iterations"] == 1
    stored = json.loads((tmp_path / "run" / "config.json").read_text("utf8"))
    assert (stored["preset"], stored["preset_reason"], stored["max_seconds"]) == ("small", "it was asked for", 0.0)
    asked = parse_train(words.split()[1:])[0]
    assert asked.precision == "auto" and stored["precision"] in ("bf16", "fp32"), "what the device computes in is kept"
    assert asked.rollout.sampler == "auto" and stored["rollout"]["sampler"] == "transformers"
    rollout = dataclasses.replace(asked.rollout, sampler="transformers")
    kept = dataclasses.replace(asked, precision=stored["precision"], rollout=rollout)
    assert RunFolder.open(tmp_path / "run").config() == kept
    trained = model_settings(str(tmp_path / "run" / "model"))
    assert trained is not None and trained.max_new_tokens == 4
    assert trained.prompt["instructions"] is True and trained.prompt["history"] == 4
    assert main([*result["evaluate"].split()[1:], "--json"]) == 0
    again = capsys.readouterr()
    assert "it plays in the same way here" in again.err
    [environment] = json.loads(again.out)["environments"].values()
    assert environment["success"]["value"] == result["evaluations"]["final-greedy"]["success"]["value"]


def test_a_run_folder_from_before_presets_is_read() -> None:
    old = TrainConfig(seed=3).as_json()
    del old["preset"], old["preset_reason"]
    assert TrainConfig.from_json(old) == TrainConfig(seed=3)


def test_the_tables_show_the_presets() -> None:
    assert (ROOT / "trainers" / "PRESETS.md").read_text("utf8").endswith(f"\n\n{preset_table()}")
    page = (ROOT / "docs" / "how-to" / "hugging-face.md").read_text("utf8")
    assert f"\n\n{preset_table(MAIN_SETTINGS)}\n" in page
    for name, subject in PRESETS.items():
        assert f"`{name}` ({subject})" in " ".join(page.split()), name


def test_every_preset_names_every_setting_once() -> None:
    names = [setting.name for setting in SETTINGS]
    assert len(set(names)) == len(names) and set(MAIN_SETTINGS) <= set(names)
    assert all(setting.reason.endswith(".") for setting in SETTINGS)
