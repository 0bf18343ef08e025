"""``import turngym`` stays light: it registers environments from tables and imports nothing heavy."""

import json
import subprocess
import sys
from typing import Any

import pytest

from turngym.agents.players import AGENTS
from turngym.agents.prompting.styles import STYLES
from turngym.agents.verifiers import VERIFIERS
from turngym.benchmarks.suites import SUITES
from turngym.envs.multiagent.players import PLAYERS
from turngym.envs.registration import FAMILIES, GAME_FAMILIES
from turngym.envs.search.retriever import RETRIEVERS
from turngym.envs.tools.sandbox.protocol import SANDBOXES
from turngym.envs.vector.backends.base import VECTOR_BACKENDS
from turngym.registry import Registry
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.curricula import CURRICULA
from turngym.trainers.reward_models import REWARD_MODELS
from turngym.wrappers.wrapping import WRAPPERS

REGISTRIES: list[Registry[Any]] = [
    AGENTS,
    STYLES,
    VERIFIERS,
    SUITES,
    PLAYERS,
    RETRIEVERS,
    SANDBOXES,
    VECTOR_BACKENDS,
    ALGORITHMS,
    REWARD_MODELS,
    CURRICULA,
    WRAPPERS,
]
HEAVY = ("torch", "transformers", "playwright", "docker", "ray", "textworld_express", "pettingzoo", "rich", "tyro")
MOST_MODULES_OF_OUR_OWN = 9
"""Errors, types, the finder of plug-ins, the contract; beside them one table for each family, and nothing else."""


def modules_after(statement: str) -> set[str]:
    """Return the modules that a fresh process holds after a statement."""
    program = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(found.stdout))


@pytest.fixture(scope="module")
def imported() -> set[str]:
    return modules_after("import turngym")


def test_importing_turngym_imports_nothing_heavy(imported: set[str]) -> None:
    heavy = {name for name in imported if name.partition(".")[0] in HEAVY}
    assert not heavy


def test_importing_turngym_adds_few_modules_to_gymnasium(imported: set[str]) -> None:
    added = imported - modules_after("import gymnasium")
    own = {name for name in added if name.partition(".")[0] == "turngym"}
    assert own == added, "nothing of others beyond what gymnasium imports"
    rest = own - {*FAMILIES, *GAME_FAMILIES}
    assert len(rest) <= MOST_MODULES_OF_OUR_OWN, sorted(rest)


def test_importing_turngym_imports_no_environment(imported: set[str]) -> None:
    parts = ("turngym.envs.multiagent", *(f"{family}." for family in (*FAMILIES, *GAME_FAMILIES)))
    assert not {name for name in imported if name.startswith(parts)}


def test_the_programs_entry_imports_no_layer_before_it_knows_the_command() -> None:
    found = modules_after("import turngym.__main__")
    layers = ("turngym.agents", "turngym.trainers", "turngym.benchmarks", "turngym.wrappers", "torch")
    assert not {name for name in found if name.startswith(layers)}


def test_playing_imports_no_network_library() -> None:
    statement = "from turngym.__main__ import main\nmain(['play', 'turngym/GuessTheNumber-v0', '--agent', 'expert'])"
    program = f"import sys\n{statement}\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)


def test_evaluating_a_simple_agent_imports_no_network_library() -> None:
    words = ["eval", "turngym/GuessTheNumber-v0", "--agent", "random", "--episodes", "2", "--json"]
    program = f"import sys\nfrom turngym.__main__ import main\nmain({words})\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)


def test_evaluating_an_environment_imports_no_suite() -> None:
    words = ["eval", "turngym/GuessTheNumber-v0", "--agent", "random", "--episodes", "2"]
    found = modules_after(
        f"import io, sys\nfrom contextlib import redirect_stdout\nfrom turngym.__main__ import main\n"
        f"with redirect_stdout(io.StringIO()):\n    main({words})"
    )
    assert not {name for name in found if name.startswith("turngym.benchmarks.suites.")}


def test_a_suite_is_found_by_importing_its_module_alone() -> None:
    found = modules_after("from turngym.benchmarks.suites import find_suite\nassert find_suite('scienceworld-eto')")
    assert {name for name in found if name.startswith("turngym.benchmarks.suites.")} == {
        "turngym.benchmarks.suites.scienceworld"
    }


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.kind)
def test_components_are_in_modules_of_their_names_or_first_words(registry: Registry[Any]) -> None:
    modules = {name: registry.module(name) for name in registry}
    ours = {
        name: module for name, module in modules.items() if module.startswith("turngym.")
    }  # not files of other tests
    assert ours
    for name, module in ours.items():
        stem = module.rpartition(".")[2]
        assert module == f"{registry.package}.players" or f"{name.replace('-', '_')}_".startswith(f"{stem}_")


STATE = """
import json, os, signal, sys, warnings, gymnasium
def state():
    handlers = {str(number): repr(signal.getsignal(number)) for number in signal.valid_signals()}
    hooks = repr((sys.excepthook, sys.unraisablehook, sys.displayhook, warnings.showwarning, sys.path_hooks))
    return [list(sys.path), repr(sys.meta_path), handlers, hooks, warnings.filters[:], dict(os.environ), os.getcwd()]
before = state()
import turngym
assert state() == before, [pair for pair in zip(before, state()) if pair[0] != pair[1]]
assert type(turngym) is type(sys), "a module is not an object of a class of ours"
"""


def test_importing_turngym_leaves_the_process_as_it_is() -> None:
    done = subprocess.run([sys.executable, "-c", STATE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
