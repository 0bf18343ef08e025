"""Replay of recorded episodes: same environment, wrappers and actions, same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium

from turngym.envs.registration import env_refusal
from turngym.envs.transcript import replay
from turngym.errors import ConfigError
from turngym.plugins import is_registered
from turngym.types import StrPath
from turngym.wrappers.core import StepResult
from turngym.wrappers.recording.episode_log import EpisodeLog, RecordedEpisode, read_episodes
from turngym.wrappers.snapshots import written
from turngym.wrappers.wrapping import Wrapping, is_left_out, wrapper_refusal


def rewrap(
    env: gymnasium.Env[Any, str], wrappers: Sequence[Mapping[str, Any]], *, is_trusted: bool = False
) -> gymnasium.Env[Any, str]:
    """Apply the wrappers of a header to an environment, except recorders.

    Args:
        env: The environment.
        wrappers: Content of the header.
        is_trusted: True for your own files, whose wrappers may name functions and files.

    Raises:
        UnknownName: There is no such wrapper.
        ConfigError: The header is damaged, or requests something that untrusted files may not.
    """
    for each in wrappers:
        try:
            wrapping = Wrapping(str(each["name"]), dict(each["options"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"no wrapper of a header: {each!r}.") from error
        if not is_trusted and (reason := wrapper_refusal(wrapping)):
            raise ConfigError(f"{reason}: pass is_trusted=True if you wrote this file.")
        if not is_left_out(wrapping):
            env = wrapping(env)
    return env


def rebuild(header: Mapping[str, Any], *, is_trusted: bool = False) -> gymnasium.Env[Any, str]:
    """Create the environment of a header, with options and wrappers; nothing named by the header is imported.

    Args:
        header: The header.
        is_trusted: Whether the file is your own, and may ask for what those of others may not.

    Raises:
        ConfigError: The environment is not registered, the header is damaged, or it requests something that untrusted
            files may not.
    """
    try:
        env_id, settings, wrappers = header["env_id"], dict(header["settings"]), header["wrappers"]
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"no header of a recorded episode: {str(header)[:80]}.") from error
    if header.get("foreign"):
        raise ConfigError(f"this episode was recorded over {header['foreign']}, which only your code can put on again.")
    if not is_registered(env_id):
        raise ConfigError(f"this episode is of {env_id!r}, which is not registered: import its module first.")
    if not is_trusted and (reason := env_refusal(env_id, settings)):
        raise ConfigError(f"{reason}: pass is_trusted=True if you wrote this file.")
    return rewrap(gymnasium.make(env_id, **settings), wrappers, is_trusted=is_trusted)


def replay_episode(episode: RecordedEpisode, *, is_trusted: bool = False) -> str:
    """Replay a recorded episode and return its new lines; equal text means equal results.

    Args:
        episode: The episode.
        is_trusted: Whether the file is your own, and may ask for what those of others may not.

    Raises:
        ConfigError: The environment cannot be made again.
    """
    header = episode.header
    env = rebuild(header, is_trusted=is_trusted)
    try:
        seed, options, state = header.get("seed"), header.get("options"), header.get("snapshot")
        observation, info = env.reset(seed=seed, options=options)
        if state is not None:
            observation, info = env.get_wrapper_attr("restore")(written(state))
        log = EpisodeLog(env, observation, info, seed, options, state)
        is_over = False
        for action in episode.actions:
            if is_over:
                break
            observation, reward, terminated, truncated, info = env.step(action)
            step = StepResult(action, observation, float(reward), terminated, truncated, info)
            log.add(step)
            is_over = step.is_over
        return log.text(complete=is_over)
    finally:
        env.close()


def replay_jsonl(path: StrPath, *, is_trusted: bool = False) -> str:
    """Replay every episode of a recorded file and return the text of the new file.

    If the environments are unchanged, it equals the text of the file, except for an incomplete last episode. An
    interrupted episode is replayed up to its interruption.

    Args:
        path: The file.
        is_trusted: Whether the file is your own, and may ask for what those of others may not.

    Raises:
        ConfigError: The file is not a recording, or an environment cannot be made again.
    """
    return "".join(replay_episode(each, is_trusted=is_trusted) for each in read_episodes(path))


def replay_transcript(text: str, *, is_trusted: bool = False) -> str:
    """Replay a transcript as :func:`turngym.envs.transcript.replay` does, wrappers included.

    Args:
        text: The transcript.
        is_trusted: True for your own transcript, whose wrappers may name functions and files.
    """
    return replay(text, partial(rewrap, is_trusted=is_trusted))
