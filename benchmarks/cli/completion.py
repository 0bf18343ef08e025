"""``turngym completion``: completion of commands and options by the Tab key, written by the parser's own library."""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union

import tyro
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse, relaxed
from turngym.errors import MissingExtra

_SHELLS = Literal["bash", "zsh", "fish"]


_CHECK = "  # Check for special path completion marker."
_OTHERWISE_FILES = {
    "bash": '  [[ -n "$completions" ]] || { COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")); return 0; }\n',
    "zsh": '  [[ -n "$completions" ]] || { _files; return; }\n',
}
"""Line that completes files where the parser's script has nothing to offer, such as after `view`; fish needs none."""


@dataclass(frozen=True)
class Arguments:
    """Print the script that completes commands and options in a shell.

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
    print(written.getvalue().replace(_CHECK, _OTHERWISE_FILES.get(arguments.shell, "") + _CHECK))
    return 0


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
