"""The command line: ``turngym COMMAND ...``. Each command is imported only when it is called.

A command that accepts user modules, such as ``my_module:MyEnv-v0``, declares ``USES_OWN_MODULES = True``. The others,
which read untrusted files, never search the working directory for modules.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TextIO

from turngym.errors import ConfigError, UnknownName, nearest
from turngym.loading import own_frame
from turngym.terminal.failures import explain
from turngym.terminal.interrupted import INTERRUPTED
from turngym.terminal.output import reserved_stdout
from turngym.text import printable

COMMANDS = {
    "list": "List environments, algorithms, agents, suites and wrappers, including plug-ins.",
    "play": "Play an environment in the terminal, or watch a random or expert agent play it.",
    "check": "Check that an environment fulfils its contract.",
    "new-env": "Write a new environment: one file with a working example game, and one with its test.",
    "eval": "Evaluate an agent on a suite or an environment, with 95 % intervals.",
    "verify": "Verify the folder of an evaluation: files, tasks, numbers, and replayed episodes.",
    "export": "Convert episodes to chat, training or preference data, or to the formats of other tools.",
    "export-tasks": "Write instances of an environment as Harbor task folders, with the same judge.",
    "rescore": "Judge recorded episodes again, with another judge or newer rules, and list what changes.",
    "compare": "Compare two evaluations on the same tasks, task by task, with 95 % intervals.",
    "view": "Show episodes turn by turn in a browser, or two runs side by side.",
    "leaderboard": "Build a leaderboard: one self-contained page with 95 % intervals and rank ranges.",
    "tournament": "Run a tournament between players of a game and rate them, with 95 % intervals.",
    "arena": "Keep players of several games playing where their ratings are least certain.",
    "solve": "Solve a small game: an equilibrium as a file that plays, and its exploitability.",
    "serve-env": "Serve an environment to OpenEnv clients, over HTTP and WebSockets.",
    "mcp": "Serve an environment as tools of the Model Context Protocol (MCP).",
    "gateway": "Serve a model to any agent program and record the exact tokens of every call.",
    "serve-search": "Serve a search engine to many environments, over HTTP.",
    "serve-model": "Serve a model as a sampler for training runs: token ids in and out, over HTTP.",
    "report": "Write the report of a training run, an evaluation or a tournament as one HTML file.",
    "train": "Train a language model on an environment and write a report.",
    "study": "Compare training methods over several seeds, with intervals and verdicts.",
    "export-model": "Export the trained model of a run for transformers or peft.",
    "learn-experiences": "Learn without gradients: a model edits a list of experiences for its prompts.",
    "label-progress": "Label every turn of recorded episodes with its progress, from the solved ones.",
    "fit-reward": "Fit a reward model to recorded episodes, for training or best-of-n.",
    "launch": "Write the file that runs a command on a cluster: Slurm, SkyPilot, Kubernetes, Docker.",
    "clean": "List or delete caches and temporary folders; runs and results stay.",
    "completion": "Print the script that completes commands and options in bash, zsh or fish.",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The words after ``turngym``; those of this process unless given.

    Returns:
        The exit status: 0 done, 1 a check failed or turngym has a bug, 2 wrong usage or a known error, 130 interrupted.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    debug = bool(words) and words[0] == "--debug"
    words = words[1:] if debug else words
    if argv is None:
        _accept_any_text()
        if not debug:
            warnings.showwarning = _show_warning
    try:
        with reserved_stdout() if "--json" in words else nullcontext():
            return _dispatch(words)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        return 0
    except SystemExit as end:
        if own_frame(end) is not None:  # code of the user's own
            return _told(end, words, debug)
        return end.code if isinstance(end.code, int) else 0  # the parser has printed help or an error
    except BaseException as error:  # a panic of compiled code is not an Exception
        return _told(error, words, debug)


def _told(error: BaseException, words: Sequence[str], debug: bool) -> int:
    """Print what ended a command and return its exit status."""
    if debug:
        traceback.print_exc()
    message, status = explain(error, words)
    print(printable(message, keep="\n"), file=sys.stderr)  # it may quote a file of others
    return status


def _accept_any_text() -> None:
    """Replace characters that a terminal or file without UTF-8 cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning on one line, without its place in the code."""
    print(f"warning: {printable(' '.join(str(message).split()), keep='')}", file=sys.stderr)


def _dispatch(words: Sequence[str]) -> int:
    if getattr(sys.modules["turngym"], "__file__", None) is None:
        raise ConfigError(
            f"{os.getcwd()} contains a checkout named turngym, which Python takes for the package: run the command "
            "`turngym` instead of `python -m turngym`, change to another folder, or rename the checkout."
        )
    if not words or words[0] in ("-h", "--help", "help"):
        return _help()
    if words[0] == "--version":
        from turngym import __version__

        print(f"turngym {__version__}")
        return 0
    name = words[0]
    if name not in COMMANDS:
        raise UnknownName(f"no command named {name!r}. {nearest(name, COMMANDS)} `turngym --help` lists them.")
    module = importlib.import_module(f"turngym.benchmarks.cli.{name.replace('-', '_')}")
    with _own_modules() if getattr(module, "USES_OWN_MODULES", False) else nullcontext():
        return int(module.main(words[1:]))


@contextmanager
def _own_modules() -> Iterator[None]:
    """Look for modules in the working directory too, after all others."""
    added = "" if "" in sys.path or os.getcwd() in sys.path else os.getcwd()
    sys.path.extend([added] if added else [])
    try:
        yield
    finally:
        if added in sys.path:
            sys.path.remove(added)


def _help() -> int:
    from rich.table import Table

    from turngym.terminal.console import Console

    console = Console(highlight=False)
    console.print("usage: turngym [--debug] COMMAND [OPTIONS]\n", markup=False)
    console.print("Multi-turn environments, agents and trainers for language-model agents.\n")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 3, 0, 2))
    for name, sentence in COMMANDS.items():
        table.add_row(f"[bold]{name}[/bold]", sentence)
    console.print(table)
    console.print("\n`turngym COMMAND --help` shows the options of a command, `--help-all` all of `train` and `eval`.")
    console.print("`turngym --version` shows the version.")
    console.print("--debug shows where an error came from.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
