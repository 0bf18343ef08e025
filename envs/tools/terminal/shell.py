"""The shell of an agent: what a box holds besides the task, and its settings."""

from __future__ import annotations

from collections.abc import Mapping

from turngym.envs.tools.harbor.files import Entry

START = "etc/shell.sh"
CLOCK = 1_720_000_000
"""Time of the files at the start, in seconds; every turn is a minute."""
REAL_TIME = 1_750_000_000
"""Files that are newer have been written by a command, and get the time of its turn."""
_HINTS = {
    "vi vim view nvim nano pico emacs ed": "write a file with cat > FILE <<'END', or change it with sed -i",
    "less more most": "use cat, head, tail or sed -n",
    "top htop watch": "use ps",
    "man info": "use COMMAND --help",
    "tmux screen ssh telnet ftp": "run the command itself",
}
_KEPT = "/var/tmp/.shell"
_EDITOR = "sh -c 'echo There is no editor here: give the text with an option such as -m. >&2; exit 1'"
VARIABLES = {
    "BASH_ENV": f"/{START}",
    "TZ": "UTC",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "EDITOR": _EDITOR,
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TEMPLATE_DIR": "",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Agent"), ("EMAIL", "agent@site.example"))
    },
}
"""Variables of every command."""


def clock(turn: int) -> int:
    """Return the time of a turn, in seconds."""
    return CLOCK + 60 * turn


def start_file() -> Entry:
    """Return the file that each shell of the agent reads first."""
    refused = [
        f'{name}() {{ echo "{name} needs a terminal, and there is none: {hint}." >&2; return 126; }}'
        for names, hint in _HINTS.items()
        for name in names.split()
    ]
    lines = [
        "unset BASH_ENV",
        "umask 022",
        f". {_KEPT} 2> /dev/null",
        f'trap \'code=$?; {{ printf "cd -- %q\\n" "$PWD"; export -p; }} > {_KEPT}; exit $code\' EXIT',
        "RANDOM=1",
        *refused,
    ]
    return Entry("file", 0o644, "".join(f"{line}\n" for line in lines).encode())


def variables(turn: int) -> Mapping[str, str]:
    """Return the variables of a command: the dates of its commits are those of its turn."""
    date = f"@{clock(turn)} +0000"
    return {**VARIABLES, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
