"""``turngym completion``: completion of commands and options by the Tab key, written by the parser's own library."""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

import tyro
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse, relaxed
from turngym.benchmarks.suites import SUITES
from turngym.envs.registration import games, specs
from turngym.errors import MissingExtra
from turngym.plugins import load_plugins

_SHELLS = Literal["bash", "zsh", "fish"]


_CHECK = "  # Check for special path completion marker."
_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
"""Names that mean nothing to a shell."""
_WITH_IDS = ("arena", "check", "eval", "list", "play", "serve-env", "tournament", "train")
_OTHERWISE = {
    "bash": """  [[ -n "$completions" && "$completions" != "__TYRO_COMPLETE_FILES__" ]] || {
    local ids=""; case "${COMP_WORDS[1]}" in %(commands)s) ids="%(ids)s" ;; esac
    COMPREPLY=($(compgen -W "$ids" -- "${COMP_WORDS[COMP_CWORD]}"; compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
    return 0
  }
""",
    "zsh": """  [[ -n "$completions" && "$completions" != "__TYRO_COMPLETE_FILES__" ]] || {
    case "$words[2]" in %(commands)s) compadd -- %(ids)s ;; esac
    _files
    return
  }
""",
}
"""Lines that complete ids and files where the parser's script has nothing to offer but files, if that."""
_FISH = "complete -c turngym -n '__fish_seen_subcommand_from %(commands)s' -a '%(ids)s'"


@dataclass(frozen=True)
class Arguments:
    """Print a script for shell completion of commands, options, and ids of environments and suites.

    For bash: `turngym completion bash > ~/.local/share/bash-completion/completions/turngym`. For zsh, a file `_turngym`
    in a folder of `fpath`; for fish, `~/.config/fish/completions/turngym.fish`.

    Args:
        shell: Shell.
    """

    shell: Positional[_SHELLS]


@dataclass(frozen=True)
class _Nothing:
    """Stands for the options of `train` where the packages of training are not installed."""


def main(argv: Sequence[str]) -> int:
    """Print the script."""
    from turngym.__main__ import COMMANDS

    arguments = parse(Arguments, argv, "completion")
    kinds = [_command(name) for name in COMMANDS]
    words = ["--tyro-write-completion", arguments.shell, "-"]
    plain = (tyro.conf.FlagCreatePairsOff, tyro.conf.PositionalMetavarFromFieldName)
    every: Any = Union[tuple(kinds)]  # noqa: UP007  (of a list)
    written = io.StringIO()
    with redirect_stdout(written), suppress(SystemExit):
        tyro.cli(every, args=words, prog="turngym", config=plain)
    names = {"ids": " ".join(_ids()), "commands": "|".join(_WITH_IDS)}
    if arguments.shell == "fish":  # which completes files itself
        print(written.getvalue() + _FISH % (names | {"commands": " ".join(_WITH_IDS)}))
    else:
        print(written.getvalue().replace(_CHECK, _OTHERWISE[arguments.shell] % names + _CHECK))
    return 0


def _ids() -> list[str]:
    """Return the ids of environments and games and the names of suites, plug-ins included, that are plain words."""
    load_plugins()
    return sorted(filter(_PLAIN.fullmatch, {*specs(), *games(), *SUITES}))


def _command(name: str) -> Any:
    """Return a command as a type that the parser takes for a subcommand."""
    module = importlib.import_module(f"turngym.benchmarks.cli.{name.replace('-', '_')}")
    named = tyro.conf.subcommand(name, prefix_name=False)
    if name != "train":
        return Annotated[relaxed(module.Arguments), named]
    try:
        default = module.default_options()
    except MissingExtra:
        return Annotated[_Nothing, named]
    return Annotated[type(default), tyro.conf.subcommand(name, default=default, prefix_name=False)]
