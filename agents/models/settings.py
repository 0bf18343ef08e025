"""The small file in a model's folder that says how it was trained, so that it is prompted the same way later.

The file ``turngym.json`` is untrusted data: nothing in it is imported, and no path, module or
address in it is followed. A checkpoint has no such file: the settings of its run hold the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from turngym import __version__
from turngym.agents.prompt_text import PromptConfig
from turngym.envs.registration import env_refusal
from turngym.errors import ConfigError, TurngymError
from turngym.storage.files import write_json
from turngym.wrappers.actions.action_format import action_format
from turngym.wrappers.wrapping import Wrapping, is_left_out, wrapper_refusal

MODEL_FILE = "turngym.json"
RUN_MODELS = "model_settings"
"""Key of a run's ``config.json`` with what the file says."""
_VERSION = 1
_LARGEST_BYTES = 256 * 1024
_MOST_NEW_TOKENS = 2**20
_NAME = re.compile(r"[\w.:/+@ -]{1,200}")
_OPTION_TEXT = re.compile(r"[\w+ -]{0,100}")
_WORD = re.compile(r"[A-Za-z_]\w{0,60}")
_STYLE = re.compile(r"[a-z_]{1,40}(:[a-z_]{1,40}=\w{1,40}(,[a-z_]{1,40}=\w{1,40}){0,9})?")


@dataclass(frozen=True)
class ModelSettings:
    """Training settings of a model that are needed to play with it.

    Args:
        env: Id of the environment, or of the game.
        env_options: Its options, without the split.
        wrappers: Put around it, the first innermost, each written as in ``history:k=4``.
        format: Name of the action format.
        style: Name of the style of prompting.
        max_new_tokens: Maximum completion length in tokens.
        temperature: Sampling temperature in training.
        top_p: Nucleus share in training.
        prompt: Fields of :class:`PromptConfig`.
        stage: Stage of the model: ``trained``, ``warm-up``, ``control`` or ``checkpoint``.
        turngym: Version that trained it.
        others: The same for each further environment of a run on several.
    """

    env: str
    env_options: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()
    format: str = "tag"
    style: str = "plain"
    max_new_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    prompt: Mapping[str, Any] = field(default_factory=dict)
    stage: str = "trained"
    turngym: str = __version__
    others: tuple[ModelSettings, ...] = ()

    def on(self, env: str) -> ModelSettings:
        """Return the settings on one of the environments; those on the first if it was not trained on that one."""
        return next((each for each in self.others if each.env == env), self)

    def write(self, folder: Path) -> None:
        """Write the file into a model's folder."""
        write_json(folder / MODEL_FILE, {"version": _VERSION, **asdict(self)})

    def agent_options(self) -> dict[str, Any]:
        """Return the fields of :class:`turngym.agents.players.AgentSettings` that follow from the training."""
        return {
            "format": self.format,
            "style": self.style,
            "max_new_tokens": self.max_new_tokens,
            "prompt": dict(self.prompt),
        }

    def usable_options(self) -> dict[str, Any]:
        """Return the options allowed from a file: those the environment declares as harmless, else plain values."""
        is_declared = not env_refusal(self.env, {})

        def is_usable(key: str, value: Any) -> bool:
            return not env_refusal(self.env, {key: value}) if is_declared else _is_plain(value)

        return {key: value for key, value in self.env_options.items() if is_usable(key, value)}

    def usable_wrappers(self) -> tuple[str, ...]:
        """Return the wrappers, or none where one of them could run code or follow a path."""
        return () if any(map(_is_refused, self.wrappers)) else self.wrappers

    @property
    def left_out(self) -> list[str]:
        """Options and wrappers that are not accepted from a file, because they name code, a path or an address."""
        options = [key for key in self.env_options if key not in self.usable_options()]
        return [*options, *(() if self.usable_wrappers() else self.wrappers)]


def model_settings(source: str, env: str = "") -> ModelSettings | None:
    """Return how the model in a folder was trained; None if unknown, as for a model from a hub.

    Args:
        source: The folder; anything else is not an error.
        env: Environment that it is to play; of a run on several, the settings on this one are returned.

    Raises:
        ConfigError: The file is there and cannot be used.

    >>> model_settings("somebody/some-model") is None
    True
    """
    folder = Path(source)
    try:
        if not source or not folder.is_dir():
            return None
        if (folder / MODEL_FILE).is_file():
            return _read(folder / MODEL_FILE, _from_json).on(env)
        run = run_of(folder)
        if run is None:
            return None
        found = _read(run / "config.json", lambda content: _of_environments(content[RUN_MODELS])).on(env)
        return replace(found, stage=_stage(folder))
    except OSError as error:
        raise ConfigError(f"how {source} was trained cannot be read ({error.strerror or error}).") from error


def run_of(folder: Path) -> Path | None:
    """Return the run folder that contains a model's folder; None if there is none."""
    for parent in list(folder.absolute().parents)[:2]:
        file = parent / "config.json"
        if (parent / "metrics.jsonl").is_file() and file.is_file():
            return parent
    return None


def _stage(folder: Path) -> str:
    if folder.parent.name == "control":
        return "control"
    return {"model": "trained", "warmup": "warm-up"}.get(folder.name, "checkpoint")


def _read(file: Path, make: Callable[[Any], ModelSettings]) -> ModelSettings:
    if file.stat().st_size > _LARGEST_BYTES:
        raise ConfigError(
            f"{file} is larger than {_LARGEST_BYTES // 1024} KiB: it is not a file of turngym. Remove it."
        )
    try:
        content = json.loads(file.read_text("utf8"))
        found = make(content)
    except (TurngymError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        words = str(error) if isinstance(error, TurngymError) else repr(error)
        raise ConfigError(
            f"{file} does not say in a usable way how the model was trained ({words[:300]}): restore it, or remove it "
            "and pass the settings as options."
        ) from error
    return found


def _from_json(content: Any) -> ModelSettings:
    version = content["version"]
    if type(version) is not int or not 1 <= version <= _VERSION:
        raise ConfigError(f"version {str(version)[:20]!r} of the file is not known to turngym {__version__}")
    return _of_environments(content)


def _of_environments(content: Any) -> ModelSettings:
    others = content.get("others", [])
    if not isinstance(others, list):
        raise ConfigError("others must be a list")
    return replace(_of_environment(content), others=tuple(map(_of_environment, others)))


def _of_environment(content: Any) -> ModelSettings:
    known = {each.name for each in fields(ModelSettings)} - {"others"}
    values = {key: value for key, value in content.items() if key in known}
    return _checked(ModelSettings(**{**values, "wrappers": tuple(values.get("wrappers", ()))}))


def _checked(found: ModelSettings) -> ModelSettings:
    """Check the type and range of every field.

    Raises:
        ConfigError: A field is invalid.
    """
    for name, pattern in (("env", _NAME), ("stage", _NAME), ("style", _STYLE)):
        value = getattr(found, name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ConfigError(f"{name} is {str(value)[:60]!r}")
    if type(found.max_new_tokens) is not int or not 1 <= found.max_new_tokens <= _MOST_NEW_TOKENS:
        raise ConfigError(f"max_new_tokens is {str(found.max_new_tokens)[:60]!r}")
    for name, low, high in (("temperature", 0.0, 100.0), ("top_p", 0.0, 1.0)):
        value = getattr(found, name)
        if type(value) not in (int, float) or not low <= value <= high:
            raise ConfigError(f"{name} is {str(value)[:60]!r}")
    if not isinstance(found.format, str) or not isinstance(found.turngym, str):
        raise ConfigError("format and turngym must be strings")
    action_format(found.format)
    for wrapper in found.wrappers:
        Wrapping.read(wrapper)
    if not isinstance(found.env_options, dict) or not all(map(_WORD.fullmatch, found.env_options)):
        raise ConfigError("env_options must be names with values")
    if not isinstance(found.prompt, dict) or not all(map(_WORD.fullmatch, found.prompt)):
        raise ConfigError("prompt must be settings with values")
    PromptConfig.build("the prompt", found.prompt)
    return found


def _is_plain(value: Any) -> bool:
    """Return whether an option is a number, a word, true or false, which cannot name a file, module or address."""
    is_word = isinstance(value, str) and _OPTION_TEXT.fullmatch(value) is not None
    return is_word or value is None or type(value) in (bool, int, float)


def _is_refused(wrapper: str) -> bool:
    """Return whether a wrapper is not accepted from a file; this includes wrappers that write files."""
    found = Wrapping.read(wrapper)
    return bool(wrapper_refusal(found)) or is_left_out(found)
