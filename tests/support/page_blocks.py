"""Run the code blocks of a page: ``page_blocks.py PAGE``, its commands in forks made before anything of it ran."""

from __future__ import annotations

import os
import runpy
import shlex
import sys
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "docs" / "generator"))
import code_blocks  # the script of the documentation


def waiting(line: str) -> tuple[int, int]:
    """Fork a process that does what a command says once it gets a byte; return its number and the pipe to it."""
    read, write = os.pipe()
    if pid := os.fork():
        os.close(read)
        return pid, write
    os.close(write)
    if not os.read(read, 1):
        os._exit(0)
    sys.argv = shlex.split(line, comments=True)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    sys.exit(0)


def main(page: Path) -> None:
    """Run the blocks in order; a warning in the page's Python is an error."""
    found = list(code_blocks.blocks(page.read_text("utf8")))
    lines = [line for each in found if each.language == "sh" and not each.reason for line in code_blocks.commands(each)]
    forks = iter([waiting(line) for line in lines])

    def start(line: str) -> None:
        pid, pipe = next(forks)
        os.write(pipe, b"!")
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status == 0, line

    warnings.simplefilter("error")
    namespace = {"__name__": "__main__"}
    for block in found:
        code_blocks.run(block, namespace, str(page), start)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
