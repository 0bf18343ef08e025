"""Playing a model as it was trained: settings in its folder are the defaults of options that are not given."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from turngym.agents.models.settings import ModelSettings, model_settings
from turngym.agents.players import AgentSettings
from turngym.agents.prompt_text import PromptConfig


def source_of(agent: str) -> str:
    """Return what follows the colon of an agent, such as the folder of a model."""
    return agent.partition(":")[2]


def environment_as_trained(
    agent: str, env: str, options: Mapping[str, Any], wrappers: Sequence[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return options and wrappers of an environment, with those of an agent's training where none are given.

    Args:
        agent: Specification of the agent.
        env: The environment as it was asked for; the training counts only if it was on this one.
        options: Options that were given.
        wrappers: Wrappers that were given; with none, those of the training are put around.
    """
    trained = model_settings(source_of(agent), env)
    if trained is None or trained.env != env:
        return dict(options), tuple(wrappers)
    return {**trained.usable_options(), **options}, tuple(wrappers) or trained.usable_wrappers()


def tell(
    agent: str,
    env: str,
    options: Mapping[str, Any] | None,
    wrappers: Sequence[str],
    settings: AgentSettings,
) -> None:
    """Print on standard error, in one line, how an agent's model was trained and what differs here.

    Args:
        agent: Specification of the agent.
        env: Environment that it plays.
        options: Options of the environment; None where several are played, each with its own.
        wrappers: Wrappers around it.
        settings: Settings of the agent.
    """
    source = source_of(agent)
    trained = model_settings(source, env)
    if trained is None:
        if (Path(source) / "config.json").is_file():
            print(f"note: {source} does not say how it was trained: it plays with the options given.", file=sys.stderr)
        return
    others = list(differences(trained, env, options, wrappers, settings))
    where = f"{source} ({trained.stage}) was trained on {trained.env}"
    if others:
        print(f"WARNING: {where} in another way: here {'; '.join(others)}.", file=sys.stderr)
    else:
        print(f"note: {where} with {in_words(trained)}: it plays in the same way here.", file=sys.stderr)


def in_words(trained: ModelSettings) -> str:
    """Return how a model was trained, as options in a few words."""
    usual = asdict(PromptConfig())
    shown = {key: value for key, value in trained.prompt.items() if value != usual[key]}
    parts = [*_pairs(trained.env_options), *trained.wrappers, *_pairs(shown), f"format={trained.format}"]
    return " ".join([*parts, f"max_new_tokens={trained.max_new_tokens}"])


def differences(
    trained: ModelSettings,
    env: str,
    options: Mapping[str, Any] | None,
    wrappers: Sequence[str],
    settings: AgentSettings,
) -> Iterator[str]:
    """Yield what is different from the training, as ``max_turns=20 instead of 15``."""
    if env != trained.env:
        yield f"it plays {env}"
    elif options is not None:
        yield from _changed(trained.env_options, {key: value for key, value in options.items() if key != "split"})
        if tuple(wrappers) != trained.wrappers:
            yield f"wrappers {' '.join(wrappers) or 'none'} instead of {' '.join(trained.wrappers) or 'none'}"
        missing = [name for name in trained.left_out if name not in (*options, *wrappers)]
        if missing:
            yield f"{', '.join(missing)} may name code or paths and must be given as options"
    known = trained.agent_options()
    prompt = known.pop("prompt")
    yield from _changed(known, {name: getattr(settings, name) for name in known})
    yield from _changed(prompt, {**prompt, **settings.prompt})


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            yield f"{key}={_short(now.get(key))} instead of {_short(before.get(key))}"


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{key}={_short(value)}" for key, value in sorted(values.items())]


def _short(value: Any) -> str:
    """Return a value on one line, without characters that a terminal would obey."""
    text = value if isinstance(value, str) and value.isprintable() else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
