"""Settings of prompts on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from turngym.agents.prompt_text import PromptConfig
from turngym.benchmarks.cli.options.parsing import key_values
from turngym.errors import ConfigError

_VARIABLE = "template."


def prompt_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Return the fields of :class:`PromptConfig` that KEY=VALUE pairs set.

    ``template.NAME=VALUE`` sets a variable of the chat template; ``chat_template=FILE`` is read.

    Raises:
        ConfigError: There is no such setting, a value is wrong, or the file cannot be read.

    >>> prompt_settings(["history=2", "template.enable_thinking=false"])
    {'history': 2, 'template': {'enable_thinking': False}}
    """
    pairs = list(pairs)
    variables = [pair.removeprefix(_VARIABLE) for pair in pairs if pair.startswith(_VARIABLE)]
    found = key_values([pair for pair in pairs if not pair.startswith(_VARIABLE)], "--prompt")
    if variables:
        found["template"] = {**found.get("template", {}), **key_values(variables, "--prompt template.")}
    if "chat_template" in found:
        found["chat_template"] = template_text(str(found["chat_template"]))
    if found:
        made = PromptConfig.build("the prompt", found)
        found.update({"date": made.date} if "date" in found else {})  # not today, but the day
    return found


def template_text(given: str) -> str:
    """Return a chat template that was given as a file or, as a run folder holds it, as text.

    Raises:
        ConfigError: There is no such file, or it holds no text.
    """
    if not given or "{{" in given:
        return given
    try:
        text = Path(given).read_text("utf8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigError(
            f"the chat template {given!r} cannot be read ({reason}): pass a file with Jinja text."
        ) from error
    if not text.strip():
        raise ConfigError(f"the chat template {given!r} is empty: pass a file with Jinja text.")
    return text
