"""Adapters: inner environments that break in unannounced ways."""

import random
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from turngym.envs.adapters.gymnasium_text import GymnasiumText
from turngym.envs.spaces import Unicode
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, MissingExtra, TurngymError

LAST: dict[str, Any] = {
    "nan": ("x", float("nan"), False, False, {}),
    "inf": ("x", float("inf"), True, False, {}),
    "nothing": (None, 0.0, False, False, {}),
    "number": (7, 0.0, False, False, {}),
    "four": ("x", 0.0, False, {}),
    "no info": ("x", 0.0, False, False, None),
    "words": ("x", "lots", False, False, {}),
}
"""What a step gives back, by kind; none of it is what Gymnasium promises."""


class Hostile(gymnasium.Env[Any, Any]):
    """Draws from the global generators, seeds them, and breaks in the middle of the action 2."""

    observation_space = Unicode()
    action_space: gymnasium.Space[Any] = spaces.Discrete(3)

    def __init__(self, kind: str = "", render_mode: str | None = None) -> None:
        self.kind, self.count = kind, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        random.seed(0)
        np.random.seed(0)
        self.count = 0
        return f"start {random.random():.6f} {np.random.normal():.6f} {self.np_random.random():.6f}", {}

    def step(self, action: int) -> Any:
        self.count += 1  # done already when it breaks
        drawn = random.random() + float(np.random.random())
        if action == 2:
            if self.kind in LAST:
                return LAST[self.kind]
            if self.kind == "unsure":
                return "x", 1.0, True, False, {"success": float("nan")}
            raise {"runtime": RuntimeError, "system": OSError, "value": ValueError}[self.kind](self.kind)
        return f"{self.count} {drawn:.6f}", 0.0, False, False, {}


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    gymnasium.register("review/Hostile-v0", entry_point=Hostile)  # type: ignore[arg-type]
    yield
    del gymnasium.registry["review/Hostile-v0"]


def hostile(kind: str) -> GymnasiumText:
    return GymnasiumText(inner="review/Hostile-v0", inner_options={"kind": kind}, solved_above=0.0)


BREAKS = ["runtime", "system", "value", *LAST]


@pytest.mark.parametrize("kind", BREAKS)
def test_what_breaks_is_raised_and_undone_so_that_snapshots_stay_true(kind: str) -> None:
    """The action was half done inside, and the snapshot knew nothing of it: the two went on differently."""
    env, twin, restored = (hostile(kind) for _ in range(3))
    for each in (env, twin):
        each.reset(seed=3)
        each.step("0")
    with pytest.raises((TurngymError, RuntimeError, OSError, ValueError, TypeError, AttributeError)):
        env.step("2")
    restored.restore(env.snapshot())
    shown = [each.step("1")[0] for each in (env, twin, restored)]
    assert shown[0] == shown[1] == shown[2]
    assert env.snapshot() == twin.snapshot() == restored.snapshot()


@pytest.mark.parametrize("backend", ["sync", "thread"])
@pytest.mark.parametrize("kind", BREAKS)
def test_in_a_vector_it_is_a_fault_of_its_slot(kind: str, backend: str) -> None:
    fns = [lambda: hostile(kind)] * 2
    with make_vec(env_fns=fns, backend=backend) as vector, make_vec(env_fns=fns) as twin:
        for each in (vector, twin):
            each.reset(seed=0)
        observations, rewards, _, truncations, infos = vector.step(["0", "2"])
        assert observations == (twin.step(["0", "0"])[0][0], "") and rewards.tolist() == [0.0, 0.0]
        assert truncations.tolist() == [False, True]
        assert infos.rows[0]["fault"] == "" and infos.rows[1]["fault"].startswith("exception: ")
        assert vector.step(["1"], [0])[0] == twin.step(["1"], [0])[0]


def test_what_is_no_number_or_text_is_told_by_name() -> None:
    for kind, words in (("nan", "gave the reward nan"), ("nothing", "showed None, which is not text")):
        env = hostile(kind)
        env.reset(seed=0)
        with pytest.raises(TurngymError, match=words):
            env.step("2")


def test_a_success_that_is_not_known_is_read_off_the_reward() -> None:
    for least, success in ((0.0, 1), (2.0, 0)):
        env = GymnasiumText(inner="review/Hostile-v0", inner_options={"kind": "unsure"}, solved_above=least)
        env.reset(seed=0)
        assert env.step("2")[-1]["success"] == success


def test_an_inner_environment_that_seeds_the_global_generators_disturbs_nobody() -> None:
    def drawn(env: GymnasiumText | None) -> tuple[Any, ...]:
        random.seed(5)
        np.random.seed(5)
        first = random.random(), np.random.normal()  # leaves the second of a pair of normal numbers behind
        if env is not None:
            env.reset(seed=1)
            env.step("1")
            env.restore(env.snapshot())
        return *first, random.random(), np.random.normal(), np.random.random()

    assert drawn(hostile("")) == drawn(None)


def test_seeds_alone_decide_whatever_the_caller_drew() -> None:
    shown = []
    for noise in (1, 2):
        random.seed(noise)
        np.random.seed(noise)
        env, other = hostile(""), hostile("")
        other.reset(seed=noise)
        shown.append([env.reset(seed=4)[0]])
        for action in "0110":
            other.step(action)
            shown[-1].append(env.step(action)[0])
    assert shown[0] == shown[1]


def test_a_reset_that_breaks_leaves_nothing_of_the_last_episode() -> None:
    class Sometimes(Hostile):
        breaks = False

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
            if type(self).breaks:
                raise RuntimeError("no more episodes")
            return super().reset(seed=seed)

    gymnasium.register("review/Sometimes-v0", entry_point=Sometimes)  # type: ignore[arg-type]
    try:
        env = GymnasiumText(inner="review/Sometimes-v0")
        fresh = env.reset(seed=1)[0]
        env.step("0")
        Sometimes.breaks = True
        with pytest.raises(RuntimeError, match="no more episodes"):
            env.reset(seed=2)
        Sometimes.breaks = False
        assert env.reset(seed=1)[0] == fresh and env.step("0")[0].startswith("1 ")
    finally:
        del gymnasium.registry["review/Sometimes-v0"]


@pytest.mark.parametrize(
    "options", [{"actions": [1, 2, 3, 4]}, {"inner_options": ["a"]}, {"actions": ["a", "", "b", "c"]}]
)
def test_options_of_another_kind_are_refused_in_words(options: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigError,
        match=r"inner_options of .* must be a mapping|actions of .* must be a list|must be 4 different",
    ):
        GymnasiumText(**options)


@pytest.mark.parametrize(
    ("env_id", "module", "package", "extra"),
    [
        ("AgentDojo", "agentdojo", "agentdojo", "agentdojo"),
        ("GEM", "gem", "gem-llm", "gem"),
        ("TextArena", "textarena", "textarena", "textarena"),
        ("ReasoningGym", "reasoning_gym", "reasoning-gym", "reasoning"),
        ("OpenSpielSeat", "pyspiel", "open-spiel", "openspiel"),
    ],
)
def test_what_is_not_installed_is_named_together_with_the_way_out(
    env_id: str, module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf'the package {package}, .*pip install "turngym\[{extra}\]"'):
        gymnasium.make(f"turngym/{env_id}-v0")
