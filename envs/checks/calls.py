"""Rules about the calls themselves: an episode can be played, in the right order, with any text, and can be seen."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from turngym.envs.checks.case import GARBAGE, Case, Env, begin, follow, garbage, odd_calls
from turngym.envs.checks.repeat import REUSABLE
from turngym.envs.checks.rule import Finding, Skipped, raised, rule
from turngym.errors import EpisodeOver
from turngym.seeding import stream

_GARBAGE_TURNS = 200
_COLOUR = re.compile(r"\x1b\[\d*m")


@rule(
    "plays",
    "An episode can be played from its reset to its end.",
    why="Nothing else can be judged, and every rollout would end in a fault.",
    fix="Read the error and the line; begin() returns an observation, apply_action() an Outcome for every text.",
)
def plays(case: Case) -> Iterator[Finding]:
    """Nothing raises during an episode."""
    try:
        assert case.recorded
    except Exception as error:  # the finding itself
        yield Finding(f"playing raised {raised(error)}")


@rule(
    "instructions-given",
    "instructions tells the rules and the form of an answer.",
    why="It is the system prompt: without it a language model cannot know what to answer, and plays at random.",
    fix="Set the class attribute `instructions`, or self.instructions in __init__ where it depends on the options.",
)
def instructions_given(case: Case) -> Iterator[Finding]:
    """There is text."""
    found = case.env.get_wrapper_attr("instructions")
    if not isinstance(found, str) or not found.strip():
        yield Finding(f"instructions must be a string that is not empty, got {found!r:.60}")


@rule(
    "no-step-without-episode",
    "step() before the first reset() and after the end of the episode raises EpisodeOver.",
    why="A rollout that steps on after the end counts rewards that do not exist, and nobody notices.",
    fix="Do not override step(): TextEnv refuses such a call.",
)
def no_step_without_episode(case: Case) -> Iterator[Finding]:
    """``step`` without an episode raises."""
    if not _raises_over(case.make()):
        yield Finding("step() before the first reset() is accepted: it must raise EpisodeOver")
    episode = begin(case.env, case.first.seed)
    follow(case.env, episode, case.first.actions)
    if episode.is_over and not _raises_over(case.env):
        yield Finding(
            "step() after the end of the episode is accepted: it must raise EpisodeOver",
            episode.seed,
            len(episode.turns),
        )


def _raises_over(env: Env) -> bool:
    try:
        env.step("anything")
    except (EpisodeOver, ResetNeeded):
        return True
    return False


@rule(
    "close-twice",
    "close() may be called before a reset, after one, and again.",
    why="Vectors, context managers and test fixtures all close; the second of them must not fail.",
    fix="In close(), let go of what is held and set it to None, so that the next call finds nothing to do.",
)
def close_twice(case: Case) -> Iterator[Finding]:
    """Closing is harmless."""
    for is_used in (False, True):
        env = case.maker()
        if is_used:
            env.reset(seed=case.seeds[0])
        for call in ("first", "second"):
            try:
                env.close()
            except Exception as error:  # the finding itself
                state = "after a reset" if is_used else "before any reset"
                yield Finding(f"the {call} close() {state} raised {raised(error)}")


@rule(
    "any-text-answered",
    "No action text raises, however odd.",
    why="A language model writes anything at all; one exception in a rollout of thousands costs that rollout.",
    fix="Match the action with a regular expression or look it up in a dict, and answer everything else with an "
    "Outcome whose action_is_valid is False. Mind lone surrogates, NUL, other scripts' digits, and megabytes; "
    "in tools, numbers out of range and empty texts.",
)
def any_text_answered(case: Case) -> Iterator[Finding]:
    """Every text has an answer."""
    env, seed = case.env, case.seeds[0]
    generator = stream("check garbage", seed)
    env.reset(seed=seed)
    calls = odd_calls(env.get_wrapper_attr("native_tools"), generator)
    for action in (*GARBAGE, *[garbage(generator) for _ in range(_GARBAGE_TURNS)], *calls):
        try:
            _, _, terminated, truncated, _ = env.step(action)
        except Exception as error:  # the finding itself
            yield Finding(f"the action {action[:40]!r} raised {raised(error)}")
            terminated = True
        if terminated or truncated:
            env.reset()


@rule(
    "renders",
    "Every render mode in metadata works: ansi gives text, rgb_array a picture uint8 [height, width, 3].",
    why="`turngym play`, recorders and reports show what render() returns.",
    fix="Name only what works in metadata['render_modes']; override render_text(), and derive from PictureEnv for "
    "pictures.",
)
def renders(case: Case) -> Iterator[Finding]:
    """Each declared render mode works."""
    modes = [mode for mode in case.env.metadata.get("render_modes", ()) if mode in ("ansi", "rgb_array")]
    if not modes:
        raise Skipped("there is no render mode to look at")
    for mode in modes:
        try:
            env = case.make(render_mode=mode)
        except TypeError as error:
            raise Skipped(f"the function that makes it takes no render_mode: {error}") from error
        env.reset(seed=case.seeds[0])
        picture: Any = env.render()
        if mode == "ansi" and not isinstance(picture, str):
            yield Finding(f"render_mode 'ansi' must give text, got {type(picture).__name__}")
        is_image = isinstance(picture, np.ndarray) and picture.dtype == np.uint8 and picture.shape[2:] == (3,)
        if mode == "rgb_array" and not is_image:
            kind = f"{picture.dtype} {picture.shape}" if isinstance(picture, np.ndarray) else type(picture).__name__
            yield Finding(f"render_mode 'rgb_array' must give uint8 [height, width, 3], got {kind}")


class _Known(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows an unknown progress as -1, because Gymnasium's checker takes nan for a difference."""

    @property
    def unwrapped(self) -> Env:
        return self

    @property
    def spec(self) -> Any:  # type: ignore[override]
        return self.env.spec

    @property
    def _np_random(self) -> Any:  # type: ignore[override]
        return self.env.unwrapped._np_random

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, self._known(info)

    def step(self, action: Any) -> Any:
        *result, info = self.env.step(action)
        return *result, self._known(info)

    def _known(self, info: dict[str, Any]) -> dict[str, Any]:
        return {key: -1.0 if isinstance(value, float) and math.isnan(value) else value for key, value in info.items()}


@rule(
    "gymnasium-accepts",
    "Gymnasium's own checker has nothing to say.",
    why="Everything that is built on Gymnasium, vectors and wrappers included, expects what it checks.",
    fix="Read its message; most often the spaces or the signatures of reset and step differ from Gymnasium's.",
    after=(
        *REUSABLE,
        "observation-in-space",
        "info-complete",
        "flags-exclusive",
        "reward-finite",
        "results-not-shared",
        "seed-varies",
    ),
)
def gymnasium_accepts(case: Case) -> Iterator[Finding]:
    """Gymnasium's checker finds nothing; rendering and closing have rules of their own here."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            env = case.make()
            env.action_space.seed(case.seeds[0])  # Gymnasium's checker samples an action before it seeds the space
            check_env(_Known(env), skip_render_check=True, skip_close_check=True)
        except Exception as error:  # the finding itself
            yield Finding(f"{type(error).__name__}: {error}")
    for warning in said:
        if issubclass(warning.category, DeprecationWarning):  # of a library or of turngym, not of Gymnasium's checker
            continue
        yield Finding(_COLOUR.sub("", str(warning.message)))
