"""Plug-ins that break, or want a name which somebody else has: named, counted, and nothing else breaks."""

import json
from pathlib import Path

import pytest
from outside import python, turngym, write_plugin

ENV = """
from turngym.envs.registration import register_env
register_env("NAME", "MODULE:GuessTheNumber", summary="A game of MODULE.")
from turngym.envs.textgames.guess_the_number import GuessTheNumber
"""
SUITE = """
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
entries = (SuiteEntry("turngym/GuessTheNumber-v0", episodes=2),)
SUITES.register("NAME")(Suite("NAME", 1, "A suite of MODULE.", entries))
"""
GAME = """
from turngym.envs.registration import register_game
register_game("NAME", "MODULE:TicTacToe", summary="A game of MODULE.")
from turngym.envs.tablegames.tic_tac_toe import TicTacToe
"""
PLAIN = """
import gymnasium
from turngym.envs.textgames.guess_the_number import GuessTheNumber
class Own(GuessTheNumber):
    pass
gymnasium.register("NAME", "MODULE:Own", disable_env_checker=True, order_enforce=False, kwargs={"env_id": "NAME"})
"""


def plugin(folder: Path, module: str, code: str, name: str, more: str = "") -> Path:
    return write_plugin(folder, module, code.replace("NAME", name).replace("MODULE", module) + more)


def listed(folder: Path, *kinds: str) -> tuple[dict[str, list[dict[str, str]]], str]:
    """Return what is listed of some kinds, by one process, and what it says on stderr."""
    code = (
        "import json; from turngym.benchmarks.cli.terminal.components import KINDS; "
        f"print(json.dumps({{k: KINDS[k]() for k in {kinds}}}))"
    )
    found = python("-c", code, site=folder)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout), found.stderr


BREAKS = {
    "raise SystemExit('bye')": "SystemExit: bye",
    "1 / 0": "ZeroDivisionError: division by zero",
    "register_env('turngym/Mine-v0', 'a:B', summary='')": "ConfigError: the namespace turngym is for",
}


def test_some_that_break_leave_nothing_behind(tmp_path: Path) -> None:
    plugin(tmp_path, "good_one", ENV, "good/Game-v0")
    for number, end in enumerate(BREAKS):
        plugin(tmp_path, f"half_{number}", ENV, f"half{number}/Game-v0", SUITE.replace("NAME", f"half{number}") + end)
    told, warnings = listed(tmp_path, "environments", "suites", "plugins")
    assert [row["name"] for row in told["environments"] if row["origin"] != "turngym"] == ["good/Game-v0"]
    assert not [row["name"] for row in told["suites"] if row["name"].startswith("half")]
    errors = {row["origin"]: row["error"] for row in told["plugins"]}
    for number, message in enumerate(BREAKS.values()):
        assert message in errors[f"half_{number} 0.1"] and warnings.count(f"half_{number} 0.1") == 1, "told once"


def test_one_that_breaks_is_named_and_counted_and_leaves_nothing_behind(tmp_path: Path) -> None:
    end, message = "import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"
    plugin(tmp_path, "good_one", ENV, "good/Game-v0")
    plugin(tmp_path, "half_one", ENV, "half/Game-v0", SUITE.replace("NAME", "half") + end)
    found = turngym("play", "good/Game-v0", "--agent", "expert", site=tmp_path)
    assert found.returncode == 0 and "solved after" in found.stdout
    assert (
        f"1 of 2 plug-ins could not be loaded; the rest works without: half_one 0.1 (half_one): {message}"
        in " ".join(found.stderr.split())
    )
    told, warnings = listed(tmp_path, "environments", "suites", "plugins")
    assert warnings.count("half_one 0.1") == 1, "told once"
    assert [row["name"] for row in told["environments"] if row["origin"] != "turngym"] == ["good/Game-v0"]
    assert "half" not in {row["name"] for row in told["suites"]}
    errors = {row["origin"]: row["error"] for row in told["plugins"]}
    assert errors["good_one 0.1"] == "" and message in errors["half_one 0.1"]
    assert turngym("play", "half/Game-v0", site=tmp_path).returncode == 2


def test_one_that_breaks_in_a_library_is_shown_with_its_own_line(tmp_path: Path) -> None:
    write_plugin(tmp_path, "bad_one", "def f():\n    import json\n    json.loads('[')\nf()\n")
    told, _ = listed(tmp_path, "plugins")
    (error,) = [row["error"] for row in told["plugins"] if row["origin"] == "bad_one 0.1"]
    assert error.startswith("JSONDecodeError: ") and error.endswith(f"({tmp_path}/bad_one.py, line 3: json.loads('['))")


@pytest.mark.parametrize(
    ("code", "name", "words"),
    [
        (ENV, "same/Game-v0", ["play", "same/Game-v0"]),
        (PLAIN, "same/Game-v0", ["check", "same/Game-v0"]),
        (ENV, "same/Game-v0", ["eval", "same/Game-v0", "--agent", "random"]),
        (SUITE, "same-suite", ["eval", "same-suite", "--agent", "random"]),
        (GAME, "same/Game-v0", ["tournament", "same/Game-v0"]),
        (GAME, "same/Game-v0", ["play", "same/GameSeat-v0"]),
    ],
)
def test_a_name_that_two_of_them_have_is_nobodys_and_both_are_named(
    code: str, name: str, words: list[str], tmp_path: Path
) -> None:
    plugin(tmp_path, "first_one", code, name)
    plugin(tmp_path, "second_one", code, name)
    plugin(tmp_path, "third_one", ENV, "third/Game-v0")
    found = turngym(*words, site=tmp_path)
    assert found.returncode == 2
    last = " ".join(found.stderr.splitlines()[-1].split())
    assert last.startswith("error: ") and "is registered by first_one 0.1 and by second_one 0.1: uninstall one" in last
    told, _ = listed(tmp_path, "environments", "games", "suites")
    assert not {name, words[1]} & {row["name"] for rows in told.values() for row in rows}
    assert "third/Game-v0" in [row["name"] for row in told["environments"]]


@pytest.mark.parametrize(
    ("code", "name", "kind"),
    [
        (PLAIN, "turngym/GuessTheNumber-v0", "environments"),
        (SUITE, "turngym-core", "suites"),
        (SUITE.replace("SUITES.register", "SUITES['textgames']; SUITES.register"), "turngym-core", "suites"),
    ],
)
def test_turngyms_own_names_stay_its_own(code: str, name: str, kind: str, tmp_path: Path) -> None:
    plugin(tmp_path, "bold_one", code, name)
    found = turngym("list", kind, "--json", site=tmp_path)
    (row,) = [row for row in json.loads(found.stdout)[kind] if row["name"] == name]
    assert row["origin"] == "turngym"
    message = " ".join(found.stderr.split())
    assert f"{name!r} is one of turngym's own, so bold_one 0.1 needs another name for its {kind[:-1]}" in message


def test_what_is_asked_for_after_a_plugin_took_its_name_is_still_turngyms(tmp_path: Path) -> None:
    plugin(tmp_path, "bold_one", SUITE, "turngym-core")
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from turngym.benchmarks.suites import SUITES\nfrom turngym.plugins import load_plugins\n"
        "load_plugins()\nprint(len(SUITES['turngym-core'].entries), SUITES.module('turngym-core'))"
    )
    assert python("-c", code, site=tmp_path).stdout == "18 turngym.benchmarks.suites.turngym_core\n"


def test_a_plugin_may_ask_for_names_while_it_registers(tmp_path: Path) -> None:
    """Looking around is what registries are for, also before all plug-ins are there."""
    plugin(tmp_path, "a_curious", SUITE, "curious", "assert 'turngym-core' in SUITES and 'z_later' not in SUITES")
    plugin(tmp_path, "z_later", SUITE, "later")
    found = turngym("list", "suites", "--json", site=tmp_path)
    assert not found.stderr
    assert {"curious", "later", "turngym-core"} <= {row["name"] for row in json.loads(found.stdout)["suites"]}


def test_entries_for_other_kinds_are_left_alone(tmp_path: Path) -> None:
    write_plugin(tmp_path, "only_suites", "raise RuntimeError('imported')", "suites = only_suites")
    assert not turngym("list", "environments", site=tmp_path).stderr
    assert not turngym("play", "no/Such-v0", site=tmp_path).stderr.count("imported")
    assert turngym("list", "suites", site=tmp_path).stderr.count("RuntimeError: imported") == 1


A_REGISTRATION_THAT_CANNOT_BE_IS_EXPLAIN: list[tuple[str, str, str]] = [
    ("Game-v0", "a:B", "an id is written namespace/Name-v0, got 'Game-v0'."),
    ("mine/Game", "a:B", "an id is written namespace/Name-v0, got 'mine/Game'."),
    ("mine/../x-v0", "a:B", "an id is written namespace/Name-v0"),
    ("turngym/Game-v0", "a:B", "the namespace turngym is for what comes with it"),
    ("TurnGym/Game-v0", "a:B", "the namespace of 'TurnGym/Game-v0' looks like turngym"),
    ("mine/G\u0430me-v0", "a:B", "an id has only ASCII letters, digits and _ . - / :"),
    ("mine/Game-v0", "a.b", "the entry point of 'mine/Game-v0' is written module:Class, got 'a.b'."),
    ("mine/Game-v0", "a-b:C", "the entry point of 'mine/Game-v0' is written module:Class, got 'a-b:C'."),
]


def test_a_registration_that_cannot_be_is_explained() -> None:
    for env_id, entry_point, message in A_REGISTRATION_THAT_CANNOT_BE_IS_EXPLAIN:
        from turngym.envs.registration import register_env, register_game
        from turngym.errors import ConfigError

        for register in (register_env, register_game):
            with pytest.raises(ConfigError) as caught:
                register(env_id, entry_point, summary="A game.")
            assert message in str(caught.value)
