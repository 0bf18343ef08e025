"""``turngym view``: episodes turn by turn, in a browser."""

from __future__ import annotations

import signal
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.evaluation.imported import as_folder
from turngym.benchmarks.pages.viewer.data import Viewer
from turngym.benchmarks.pages.viewer.runs import open_run, show_values
from turngym.errors import ConfigError
from turngym.storage.folders import require_file

_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True)
class Arguments:
    """Show episodes turn by turn in a browser, or two runs side by side.

    A path is the folder of an evaluation, tournament or training run, a JSONL file or folder of the wrapper `record`,
    or a log of another suite (ATIF, Inspect AI, verifiers, Harbor). Without --out, a local server shows the page at the
    printed address until Ctrl-C; it opens large files immediately. With --out, one self-contained HTML file is written.

    Args:
        path: Folder or file to show.
        other: Second run on the same tasks; tasks that differ most come first.
        values: Playouts from the states of the first run, as `turngym eval --from FOLDER@every --repeats 20` writes
            them, shown as a curve of values over turns (default: FOLDER/values, if it exists).
        out: Write a page to this file instead of serving it.
        episodes: Maximum number of episodes in a written page; 0 for all.
        failed: Only failed episodes.
        task: Only episodes of one task, given by number, label#number, match, instance or seed.
        port: Port of the server; 0 selects a free one.
        open: Open the page in the local browser.
        force: Overwrite an existing file.
    """

    path: Positional[Path]
    other: Positional[Path | None] = None
    values: Path | None = None
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    episodes: int = 100
    failed: bool = False
    task: str = ""
    port: int = 0
    open: bool = False
    force: bool = False


def main(argv: Sequence[str]) -> int:
    """Serve or write the page."""
    arguments = parse(Arguments, argv, "view")
    if arguments.episodes < 0:
        raise ConfigError(f"--episodes must be 0 or more, got {arguments.episodes}.")
    if not 0 <= arguments.port < 65536:
        raise ConfigError(f"--port must be in 0 to 65535, got {arguments.port}.")
    if any(map(str.isspace, arguments.task)):
        raise ConfigError(f"--task takes one word, got {arguments.task!r}.")
    with ExitStack() as stack:
        paths = [
            stack.enter_context(as_folder(each, scored=False)) for each in (arguments.path, arguments.other) if each
        ]
        runs = [open_run(path) for path in paths]
        show_values(runs[0], arguments.values)
        return _show(Viewer(*runs), arguments)


def _show(viewer: Viewer, arguments: Arguments) -> int:
    for run in viewer.runs:
        run.require_episodes()
    query = " ".join(filter(None, ["failed" if arguments.failed else "", arguments.task and f"task:{arguments.task}"]))
    return _serve(viewer, arguments, query) if arguments.out is None else _write(viewer, arguments, query)


def _serve(viewer: Viewer, arguments: Arguments, query: str) -> int:
    from turngym.benchmarks.pages.viewer.server import ViewerServer

    sys.setswitchinterval(_SWITCH_SECONDS)  # the page shall not wait for the search
    viewer.search()
    try:
        server = ViewerServer(viewer, arguments.port, query)
    except OSError as error:
        raise ConfigError(
            f"port {arguments.port} cannot be used ({error}): leave --port out for a free one."
        ) from error
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with server:
        print(server.address, flush=True)
        print("Ctrl-C ends it. Anyone with this address can read these episodes.", file=sys.stderr, flush=True)
        if arguments.open:
            webbrowser.open(server.address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            print(file=sys.stderr)
    return 0


def _write(viewer: Viewer, arguments: Arguments, query: str) -> int:
    from turngym.benchmarks.pages.viewer.file import write_page

    assert arguments.out is not None
    require_file(arguments.out, "view.html")
    if arguments.out.exists() and not arguments.force:
        raise ConfigError(f"{arguments.out} exists already: pass --force to write over it, or another file.")
    if arguments.task:
        _require_task(viewer, arguments.task)
    written, found = write_page(viewer, arguments.out, query, arguments.episodes or None)
    what = "tasks" if viewer.is_diff else "episodes"
    print(f"written to {arguments.out}: {written} of {found} {what}, {arguments.out.stat().st_size / 2**20:.1f} MiB")
    return 0


def _require_task(viewer: Viewer, task: str) -> None:
    """Refuse a task of which there is no episode."""
    for run in viewer.runs:
        run.wait_for()
    if next(viewer.all_rows(f"task:{task}"), None) is None:
        raise ConfigError(
            f"no episode is of the task {task!r}: --task takes its number, label#number, match, instance or seed."
        )
