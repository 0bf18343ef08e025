"""``turngym new-env``: a working environment to build your own from: two files, a package, or a Harbor task."""

from __future__ import annotations

import importlib.resources
import importlib.util
import keyword
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.template.harbor import HARBOR
from turngym.benchmarks.template.minimal import MINIMAL
from turngym.benchmarks.template.package import files
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic
from turngym.storage.folders import require_folder
from turngym.terminal.console import Console

_TEMPLATE = "turngym.benchmarks.template"
_CLASS, _WORDS = "TreasureHunt", "Treasure Hunt"
_CAMEL_CASE = re.compile(r"[A-Z][A-Za-z0-9]*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_MODULE = 36
_TAKEN = ("Cell", "ConfigError", "JSONValue", "None", "Outcome", "TextEnv", "True", "False")


@dataclass(frozen=True)
class Arguments:
    """Write a new environment: one file with a working example game, and one with its test.

    Args:
        name: Class name in CamelCase, such as LockPicker; the files are lock_picker.py and test_lock_picker.py.
        folder: Output folder, created if missing.
        package: Write an installable package with a suite instead.
        minimal: Write a minimal environment of twelve lines instead.
        tools: Write a package whose environment has typed tools, and images as an option.
        picture: The same as --tools; both may be given.
        harbor: Write a Harbor task instead, a folder such as lock-picker.
    """

    name: Positional[str]
    folder: Path = Path(".")
    package: bool = False
    minimal: bool = False
    tools: bool = False
    picture: bool = False
    harbor: bool = False


def main(argv: Sequence[str]) -> int:
    """Write both files and say what to do next."""
    arguments = parse(Arguments, argv, "new-env")
    module = module_name(arguments.name)
    console = Console(highlight=False)

    def line(text: str, style: str = "") -> None:
        console.print(text, style=style, markup=False, soft_wrap=True)

    has_tools = arguments.tools or arguments.picture
    if arguments.harbor:
        return _main_harbor(arguments, has_tools)
    if (arguments.package or has_tools) and arguments.minimal:
        raise ConfigError("--minimal excludes --package, --tools and --picture: pass one of them.")
    if arguments.package or has_tools:
        written = _write_package(arguments.name, arguments.folder, has_tools)
        line(f"written: {written}\n")
        line("It is a package that works, with two environments and a suite. Its README.md shows what to do:", "bold")
        line(f"  pip install -e {written}\n  turngym check {module}/{arguments.name}-v0")
        return 0
    if arguments.minimal:
        game, test = _write_minimal(arguments.name, arguments.folder), None
    else:
        game, test = write_files(arguments.name, arguments.folder)
    line("\n".join(f"written: {path}" for path in (game, test) if path is not None))
    own = f"{game}:{arguments.name}"
    line(f"\nIt is a game that works. Change the rules, and keep {'these' if test else 'this'} passing:", "bold")
    line(f"  turngym check {own}" + (f"\n  python -m pytest {test}" if test else ""))
    line("\nThen play it, evaluate an agent on it, and train on it:", "bold")
    line(f"  turngym play {own}\n  turngym eval {own} --agent random\n  turngym train --env {own}")
    line("\nTo use it by its id, import the file first; it registers itself with Gymnasium:", "bold")
    line(f'  import turngym, {module}\n  env = gymnasium.make("my/{arguments.name}-v0")')
    line("\nIn a package of your own (--package writes one), turngym finds it without an import through this:", "bold")
    line(f'  [project.entry-points."turngym.plugins"]\n  {module} = "your_package.{module}"')
    return 0


def _main_harbor(arguments: Arguments, has_tools: bool) -> int:
    if arguments.package or has_tools or arguments.minimal:
        raise ConfigError("--harbor excludes --package, --minimal, --tools and --picture: pass one of them.")
    written = _write_harbor(arguments.name, arguments.folder)
    target = shlex.quote(f"harbor:{written}")
    print(f"written: {written}\n")
    print("It is a Harbor task that works. Change it, and keep the expert at 1 and random play at 0:")
    print(f"  turngym eval {target} --agent expert\n  turngym eval {target} --agent random")
    print(f"  turngym check {target} --episodes 1")
    return 0


def write_files(name: str, folder: Path) -> tuple[Path, Path]:
    """Write the game and its test under a new name, and return their paths.

    Raises:
        ConfigError: The name is not that of a class, or one of the files exists.
    """
    module = module_name(name)
    require_folder(folder)
    game, test = folder / f"{module}.py", folder / f"test_{module}.py"
    for path in (game, test):
        if path.exists():
            raise ConfigError(f"{path} exists already: pass another name, or another --folder.")
    write_atomic(game, renamed(_source("game.py"), name))
    write_atomic(test, renamed(_source("test_game.py"), name))
    return game, test


def _write_minimal(name: str, folder: Path) -> Path:
    """Write the smallest environment under a new name, and return its path.

    Raises:
        ConfigError: The name is not that of a class, or the file exists.
    """
    path = folder / f"{module_name(name)}.py"
    require_folder(folder)
    if path.exists():
        raise ConfigError(f"{path} exists already: pass another name, or another --folder.")
    write_atomic(path, MINIMAL.format(name=name))
    return path


def _write_package(name: str, folder: Path, tools: bool = False) -> Path:
    """Write a package with the game, its test, a suite and the entry points, and return its folder.

    Raises:
        ConfigError: The name is not that of a class, or the folder of the package exists.
    """
    module = module_name(name)
    require_folder(folder)
    target = folder / f"turngym-{module.replace('_', '-')}"
    if target.exists():
        raise ConfigError(f"{target} exists already: pass another name, or another --folder.")
    kind = "tools" if tools else "game"
    game, test = renamed(_source(f"{kind}.py"), name), renamed(_source(f"test_{kind}.py"), name)
    for path, content in files(name, module, " ".join(_WORD.findall(name)), game, test, tools).items():
        write_atomic(target / path, content)
    return target


def _write_harbor(name: str, folder: Path) -> Path:
    """Write a Harbor task under a new name, and return its folder.

    Raises:
        ConfigError: The name is not that of a class, or the folder of the task exists.
    """
    require_folder(folder)
    target = folder / module_name(name).replace("_", "-")
    if target.exists():
        raise ConfigError(f"{target} exists already: pass another name, or another --folder.")
    for path, content in HARBOR.items():
        write_atomic(target / path, content.replace("{name}", target.name))
    return target


def _source(file: str) -> str:
    return importlib.resources.files(_TEMPLATE).joinpath(file).read_text(encoding="utf8")


def renamed(source: str, name: str) -> str:
    """Return a file of the template under a new name.

    >>> renamed('"Treasure Hunt": entry_point="treasure:TreasureHunt"', "LockPicker")
    '"Lock Picker": entry_point="treasure:LockPicker"'
    """
    text = source.replace("np\n\nfrom turngym.", "np\nfrom turngym.")  # to others, turngym is a package like any
    text = re.sub(rf"from {re.escape(_TEMPLATE)}\.(game|tools)", f"\nfrom {module_name(name)}", text)
    return text.replace(_CLASS, name).replace(_WORDS, " ".join(_WORD.findall(name)))


def module_name(name: str) -> str:
    """Return the name of the module of a class.

    Raises:
        ConfigError: It is not a name of a class, or the module would hide another one.

    >>> module_name("FrozenLake"), module_name("EZPoints"), module_name("Game2048")
    ('frozen_lake', 'ez_points', 'game_2048')
    """
    if not _CAMEL_CASE.fullmatch(name) or name in _TAKEN:
        raise ConfigError(
            f"an environment is named in CamelCase, letters and digits only, got {name!r}. "
            f"Did you mean {camel_case(name)!r}?"
        )
    module = _snake_case(name)
    if len(module) > _LONGEST_MODULE:
        raise ConfigError(f"the name of an environment has at most {_LONGEST_MODULE} characters, got {module!r}.")
    if _hides(module):
        raise ConfigError(
            f"the file {module}.py would hide the module {module!r} from other code. Did you mean {name + 'Game'!r}?"
        )
    return module


def _snake_case(name: str) -> str:
    return "_".join(_WORD.findall(name)).lower()


def _hides(module: str) -> bool:
    """Return whether a file of that name would hide a module; another file of the current folder is none."""
    if keyword.iskeyword(module) or module in sys.stdlib_module_names:
        return True
    spec = importlib.util.find_spec(module)
    return spec is not None and (spec.origin is None or Path(spec.origin).parent != Path.cwd())


def camel_case(name: str) -> str:
    """Return the nearest name that a class can have.

    >>> camel_case("lock picker"), camel_case("2048"), camel_case("über-Game!"), camel_case("")
    ('LockPicker', 'Game2048', 'BerGame', 'MyGame')
    """
    words = re.findall(r"[A-Za-z0-9]+", name)
    found = "".join(word[0].upper() + word[1:] for word in words) or "MyGame"
    found = found if found[0].isalpha() else f"Game{found}"
    return f"{found}Game" if found in _TAKEN or _hides(_snake_case(found)) else found
