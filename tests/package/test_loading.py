"""Code of the user's own by name: every kind of thing in every spelling, and what is said where it cannot be had."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import turngym
from turngym.__main__ import main
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.players.random import RandomAgent
from turngym.agents.verifiers import make_verifier
from turngym.benchmarks.tournaments.seats import is_agent
from turngym.envs.multiagent.players import make_player
from turngym.envs.multiagent.registration import is_game, make_game
from turngym.envs.own import find_spec
from turngym.errors import BrokenCode, ConfigError, TurngymError, UnknownName
from turngym.loading import call_with, is_library
from turngym.trainers.algorithms import build
from turngym.trainers.reward_models import make_reward_model
from turngym.wrappers.wrapping import Wrapping

SOURCE = '''
from __future__ import annotations

import gymnasium

from turngym.agents.players import AGENTS
from turngym.agents.core import Agent, Decision
from turngym.agents.verifiers import VERIFIERS
from turngym.envs.multiagent.players import FirstLegalPlayer
from turngym.envs.tablegames.tic_tac_toe import TicTacToe
from turngym.envs.textgames.tower_of_hanoi import TowerOfHanoi
from turngym.trainers.algorithms.grpo import GRPO
from turngym.trainers.reward_models.milestones import Milestones
from turngym.wrappers.core import TextWrapper


class OwnEnv(TowerOfHanoi):
    """An environment."""


class OwnGame(TicTacToe):
    """A game."""


class OwnAgent(Agent):
    """An agent without settings."""

    def act(self, requests):
        return [Decision("none") for _ in requests]


def make_own_agent(settings):
    return OwnAgent()


@AGENTS.register("own-agent-{0}")
def registered_agent(argument, settings):
    """An agent that its module registers."""
    return OwnAgent()


class OwnPlayer(FirstLegalPlayer):
    """A player."""


class OwnWrapper(TextWrapper):
    """A wrapper with an option."""

    def __init__(self, env, words=3):
        super().__init__(env)
        self.words = words


class OwnVerifier:
    """A verifier."""

    def score(self, trajectory):
        return 1.0


@VERIFIERS.register("own-verifier-{0}")
def verifier(argument, settings, agent):
    return OwnVerifier()


class OwnMethod(GRPO):
    """An algorithm."""


class OwnReward(Milestones):
    """A reward model."""


gymnasium.register("own{0}/Hanoi-v0", entry_point=f"{{__name__}}:OwnEnv", kwargs={{"env_id": "own{0}/Hanoi-v0"}})
'''


@pytest.fixture
def spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """A file, and a module that can be imported, with the same content."""
    number = str(abs(hash(tmp_path)))
    (tmp_path / "own_file.py").write_text(SOURCE.format(f"file{number}"))
    (tmp_path / f"own_module{number}.py").write_text(SOURCE.format(f"module{number}"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = dict(gymnasium.registry)
    yield "own_file.py", f"own_module{number}"
    gymnasium.registry.clear()
    gymnasium.registry.update(before)
    sys.modules.pop(f"own_module{number}", None)


def _verifier(text: str) -> Any:
    return make_verifier(text, AgentSettings(), RandomAgent())


def _played(text: str) -> str:
    vector = turngym.make_vec(text, 2, backend="process")
    vector.reset(seed=0)
    vector.close()
    return text


def _wrapped(text: str) -> Any:
    return Wrapping.read(text)(gymnasium.make("turngym/TowerOfHanoi-v0"))


KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "environment": ("OwnEnv", lambda text: gymnasium.make(find_spec(text)).unwrapped),
    "environments of a vector": ("OwnEnv", _played),
    "game": ("OwnGame", make_game),
    "agent": ("OwnAgent", make_agent),
    "agent by a function": ("make_own_agent", make_agent),
    "player": ("OwnPlayer", lambda text: make_player(text, make_game("turngym/TicTacToe-v0"))),
    "wrapper": ("OwnWrapper", _wrapped),
    "wrapper with options": ("OwnWrapper:words=7", _wrapped),
    "verifier": ("OwnVerifier", _verifier),
    "algorithm": ("OwnMethod", build),
    "reward model": ("OwnReward", make_reward_model),
    "reward model with options": ("OwnReward:weight=0.5", make_reward_model),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_thing_of_ones_own_is_found_by_file_and_by_module(kind: str, spellings: tuple[str, str]) -> None:
    name, make = KINDS[kind]
    for place in spellings:
        made = make(f"{place}:{name}")
        assert isinstance(made, str) or type(made).__name__.startswith("Own"), made
        if kind == "wrapper with options":
            assert made.words == 7


def test_an_id_that_a_file_or_module_registers_is_found_with_it(spellings: tuple[str, str]) -> None:
    number = spellings[1].removeprefix("own_module")
    for place, word in zip(spellings, ("file", "module"), strict=True):
        spec = find_spec(f"{place}:own{word}{number}/Hanoi-v0")
        assert spec.id == find_spec(f"{place}:OwnEnv").id == f"own{word}{number}/Hanoi-v0"
        assert type(make_agent(f"{place}:own-agent-{word}{number}")).__name__ == "OwnAgent"
        assert type(_verifier(f"{place}:own-verifier-{word}{number}")).__name__ == "OwnVerifier"


def test_a_table_seats_agents_and_players_of_ones_own(spellings: tuple[str, str]) -> None:
    game = make_game("turngym/TicTacToe-v0")
    for place in spellings:
        assert is_agent(f"{place}:OwnAgent", game) and not is_agent(f"{place}:OwnPlayer", game)
        assert is_game(f"{place}:OwnGame") and not is_game(f"{place}:OwnEnv")


def test_registered_names_come_before_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scripted.py").write_text("up = 3\n")
    (tmp_path / "history.py").write_text("k = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    assert make_agent("scripted:up").actions == ("up",)  # type: ignore[attr-defined]
    assert Wrapping.read("history:k=4") == Wrapping("history", {"k": 4})


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_tells_what_is_wrong_with_a_name(kind: str, spellings: tuple[str, str]) -> None:
    make, place = KINDS[kind][1], spellings[0]
    Path("broken.py").write_text("import gymnasium\n\nSIZE = nmupy.zeros(3)\n")
    Path("unread.py").write_text("def f(:\n")
    for name, error, message in (
        ("nowhere.py:Some", UnknownName, "there is no file "),
        ("no_such.module:Some", UnknownName, "no module named 'no_such', which 'no_such.module:Some' needs"),
        (f"{place}:Sme", UnknownName, f"{place} has no 'Sme'"),
        (f"{place}:gymnasium", ConfigError, f"gymnasium of {place} is an object of the type module, expected a"),
        ("broken.py:Some", BrokenCode, "NameError: name 'nmupy' is not defined\n"),
        ("unread.py:Some", BrokenCode, "unread.py cannot be imported: SyntaxError: "),
    ):
        with pytest.raises(error) as caught:
            make(name)
        assert message in str(caught.value), name
    with pytest.raises(BrokenCode, match=r"broken\.py, line 3: SIZE = nmupy\.zeros\(3\)$"):
        make("broken.py:Some")


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        (
            "OwnEnv",
            make_agent,
            "is a class of turngym.envs.textgames.tower_of_hanoi.TowerOfHanoi, expected an agent: a class of",
        ),
        ("OwnAgent", find_spec, "is a class of turngym.agents.core.Agent, expected an environment: a class of"),
        ("OwnAgent", build, "is a class of turngym.agents.core.Agent, expected a training method: a complete class"),
        ("OwnEnv", Wrapping.read, None),
        ("OwnVerifier", make_reward_model, "is a class of nothing that turngym knows, expected a reward model"),
    ],
)
def test_a_thing_of_another_kind_is_named_with_what_was_expected(
    name: str, make: Callable[[str], Any], message: str | None, spellings: tuple[str, str]
) -> None:
    if message is None:
        make, message = _wrapped, "expected a wrapper: a class of turngym.wrappers.TextWrapper"
    with pytest.raises(TurngymError, match=message):
        make(f"{spellings[0]}:{name}")


def test_a_module_that_the_own_code_lacks_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "needy.py"
    path.write_text("import os\nimport no_such_package\n")
    with pytest.raises(BrokenCode, match=r"No module named 'no_such_package'\n .*needy\.py, line 2: import no_such_pa"):
        make_agent(f"{path}:Mine")


def test_an_exit_in_own_code_is_an_error_of_that_code(tmp_path: Path) -> None:
    path = tmp_path / "leaves.py"
    path.write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(BrokenCode, match=r"cannot be imported: SystemExit: 3\n .*leaves\.py, line 2: sys\.exit\(3\)"):
        make_agent(f"{path}:Mine")


@pytest.mark.parametrize(("most", "made"), [(0, ()), (1, (1,)), (2, (1, 2))])
def test_own_code_is_called_with_what_it_takes(most: int, made: tuple[int, ...]) -> None:
    makers: list[Callable[..., Any]] = [lambda: (), lambda one: (one,), lambda one, two: (one, two)]
    assert call_with(makers[most], 1, 2) == made


def test_the_commands_take_files(spellings: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    place = spellings[0]
    words = ["eval", f"{place}:OwnEnv", "--agent", f"{place}:OwnAgent", "--wrapper", f"{place}:OwnWrapper:words=2"]
    words += ["--episodes", "1", "--option", "discs=2"]
    assert main(words) == 0, capsys.readouterr().err
    assert main([*words, "--best-of", "2", "--verifier", f"{place}:OwnVerifier"]) == 0, capsys.readouterr().err
    players = ["--players", "random", f"{place}:OwnPlayer", f"mine={place}:OwnAgent", "--blocks", "1"]
    assert main(["tournament", f"{place}:OwnGame", *players]) == 0, capsys.readouterr().err
    assert main(["play", f"{place}:OwnEnv", "--agent", "expert", "--option", "discs=2"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    "folder", ["/home/me/.local/lib/python3.11/site-packages/tyro", "/usr/lib/python3/dist-packages"]
)
def test_packages_of_the_user_and_the_system_are_no_code_of_the_user(folder: str) -> None:
    assert is_library(f"{folder}/_cli.py") and not is_library("/home/me/packages/mine.py")


def test_a_player_of_the_game_with_an_argument_is_no_agent() -> None:
    game = make_game("turngym/LiarsDice-v0")
    name = next(iter(game.players))
    assert not is_agent(f"{name}:50", game) and is_agent("hf:50", game)
