"""Plug-ins whose metadata, names or exceptions are hostile: shown without being obeyed, and nothing else breaks."""

import json
from pathlib import Path

import pytest
from outside import python, write_plugin

GOOD = """
from turngym.envs.registration import register_env
register_env("good/Game-v0", "good_one:GuessTheNumber", summary="A game.")
from turngym.envs.textgames.guess_the_number import GuessTheNumber
"""
RUDE = "class Rude(Exception):\n    def __str__(self): raise RuntimeError\nraise Rude"
BASE = "class Base(BaseException): pass\nraise Base('out')"
SUITE = "from turngym.benchmarks.suites import SUITES\nSUITES.register({name})(object())"
SUMMARY = (
    "from turngym.envs.registration import register_env\nregister_env('bad/Game-v0', 'bad_one:Game', summary={text})"
)
REGISTER = "import gymnasium\ngymnasium.register({env_id!r}, {entry!r})\nclass Game: pass"


def listed(folder: Path) -> tuple[dict[str, str], set[str], str]:
    """Return package -> why it could not be loaded, the ids of environments, and all that `turngym list` writes."""
    code = (
        "import json; from turngym.__main__ import main; from turngym.benchmarks.cli.terminal.components import KINDS\n"
        "status = main(['list'])\n"
        "print(json.dumps([status, KINDS['plugins'](), KINDS['environments']()]))"
    )
    found = python("-c", code, site=folder)
    assert found.returncode == 0, found.stderr
    tables, _, last = found.stdout.rstrip().rpartition("\n")
    status, plugins, environments = json.loads(last)
    ids = {row["name"] for row in environments}
    assert status == 0 and "good/Game-v0" in tables and "good/Game-v0" in ids, "the good one is there"
    return {row["origin"]: row["error"] for row in plugins}, ids, tables + found.stderr


HOSTILE = [
    (BASE, "Base: out"),
    ("raise GeneratorExit", "GeneratorExit"),
    (RUDE, "Rude: (its message cannot be read)"),
    ("raise RuntimeError('\\x1b]0;title\\x07\\x1b[2J')", r"RuntimeError: \x1b]0;title\x07\x1b[2J"),
    ("raise RuntimeError('x' * 20_000_000)", "RuntimeError: xxx"),
    (SUITE.format(name="'\\x1b[31mred'"), "suite names are printable text"),
    (SUITE.format(name="7"), "got a int"),
    (SUITE.format(name="'a' * 1_000_000"), "of 1 to 200 letters"),
    (SUMMARY.format(text="None"), "the summary of 'bad/Game-v0' is a sentence"),
    (REGISTER.format(env_id="turngym/Own-v0", entry="bad_one:Game"), "the namespace turngym is for what comes"),
    (
        REGISTER.format(env_id="turngym/Own-v0", entry="turngym.envs.textgames.sokoban:Sokoban"),
        "the namespace turngym is for what comes",
    ),
]


def test_code_that_breaks_is_named_and_its_words_are_shown_safely(tmp_path: Path) -> None:
    write_plugin(tmp_path, "good_one", GOOD)
    for number, (code, _) in enumerate(HOSTILE):
        write_plugin(tmp_path, f"bad_{number}", code.replace("bad_one", f"bad_{number}"))
    errors, ids, written = listed(tmp_path)
    for number, (_, message) in enumerate(HOSTILE):
        error = errors[f"bad_{number} 0.1"]
        assert message in error and len(error) < 1000
    assert len(written) < 100_000
    assert not {"\x1b", "\x07", "\u202e"} & set(written)
    assert "turngym/Own-v0" not in ids and "bad/Game-v0" not in ids


BROKEN: list[tuple[str, bytes, str]] = [
    ("METADATA", b"Metadata-Version: 2.1\nName: \xff\xfe\nVersion: 0.1\n", ""),
    ("METADATA", b"Metadata-Version: 2.1\n", ""),
    ("METADATA", b"Metadata-Version: 2.1\nName: a\x1b[2Jb\nVersion: \x1b]0;t\x07\n", ""),
    ("entry_points.txt", b"[turngym.plugins]\nmain = a b!\n", "its value is not written package.module"),
    ("entry_points.txt", b"[turngym.plugins]\n\x1b[2J = no_such\x1b[31m\n", "its value is not written"),
    (
        "entry_points.txt",
        b"[turngym.plugins]\n" + b"".join(b"m%d = no_such_%d\n" % (n, n) for n in range(5000)),
        "it has 5000 entry points; 100 of them are loaded",
    ),
    ("entry_points.txt", b"[turngym.plugins]\nm = " + b"a." * 500_000 + b"b\n", "Error"),
]
UNREADABLE: list[tuple[str, bytes, str]] = [
    ("entry_points.txt", b"[turngym.plugins]\n\xff = bad_one\n", "its entry points cannot be read"),
    ("entry_points.txt", b"[turngym.plugins]\nnonsense\n", "its entry points cannot be read"),
]
"""Files that keep Python from reading the entry points of all packages at once."""


@pytest.mark.parametrize("broken", [BROKEN, UNREADABLE], ids=["broken", "unreadable"])
def test_metadata_that_is_broken_harms_no_other_package(broken: list[tuple[str, bytes, str]], tmp_path: Path) -> None:
    write_plugin(tmp_path, "good_one", GOOD)
    for number, (file, content, _) in enumerate(broken):
        write_plugin(tmp_path, f"bad_{number}", "1")
        (tmp_path / f"bad_{number}-0.1.dist-info" / file).write_bytes(content)
    errors, _, written = listed(tmp_path)
    for number, (file, _, message) in enumerate(broken):
        name = f"bad_{number} 0.1"
        assert file == "METADATA" or message in errors[name], (name, message)
    assert len(written) < 200_000 and not {"\x1b", "\x07"} & set(written)


def test_descriptions_of_plugins_are_shown_on_one_line_and_not_obeyed(tmp_path: Path) -> None:
    write_plugin(tmp_path, "good_one", GOOD)
    write_plugin(tmp_path, "bad_one", SUMMARY.format(text="'\\x1b[31mred \\u202e' + 'x' * 100_000"))
    _, _, written = listed(tmp_path)
    assert r"\x1b[31mred" in written and not {"\x1b", "\u202e"} & set(written) and len(written) < 100_000


def test_an_environment_of_turngym_is_not_replaced_by_another_of_turngym(tmp_path: Path) -> None:
    entry = "turngym.envs.textgames.guess_the_number:GuessTheNumber"
    write_plugin(tmp_path, "bad_one", REGISTER.format(env_id="turngym/Sokoban-v0", entry=entry))
    code = (
        "import gymnasium, turngym, warnings; warnings.simplefilter('ignore')\n"
        "from turngym.plugins import load_plugins\nload_plugins()\n"
        "print(gymnasium.spec('turngym/Sokoban-v0').entry_point)"
    )
    assert python("-c", code, site=tmp_path).stdout == "turngym.envs.textgames.sokoban:Sokoban\n"
