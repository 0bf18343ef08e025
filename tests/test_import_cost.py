"""``import turngym`` stays light: it registers environments from tables and imports nothing heavy."""

import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "playwright", "docker", "ray", "textworld_express", "pettingzoo", "rich", "tyro")
MOST_MODULES_OF_OUR_OWN = 14
"""Errors, types, plug-ins (the module that finds them), the registration tables. An environment, a vector or an agent among them is a mistake."""


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
    assert len(own) <= MOST_MODULES_OF_OUR_OWN, sorted(own)


def test_importing_turngym_imports_no_environment(imported: set[str]) -> None:
    families = ("textgames.", "textworlds.", "tablegames.", "werewolf.", "multiagent")
    assert not {name for name in imported if name.startswith(tuple(f"turngym.envs.{family}" for family in families))}


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
