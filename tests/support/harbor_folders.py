"""Harbor task folders of several kinds, written by code: what they hold, and what is wrong with some."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

CHECK = '[ "$(cat answer.txt 2> /dev/null)" = {text} ] && echo 1 > {logs}/reward.txt || echo 0 > {logs}/reward.txt\n'
LOGS = "/logs/verifier"
DOCKERFILE = "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY data.txt /app/\n"


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf8")
    return folder


def task(toml: str = 'schema_version = "1.4"\n', tests: str = "", solution: str = "", **files: str) -> dict[str, str]:
    """Return the files of a task that wants the text of ``data.txt`` in ``answer.txt``."""
    return {
        "task.toml": toml,
        "instruction.md": "Copy data.txt to answer.txt.\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/data.txt": "hello\n",
        "tests/test.sh": tests or CHECK.format(text="hello", logs=LOGS),
        "solution/solve.sh": solution or "#!/bin/bash\ncp data.txt answer.txt\n",
        **{name.replace("__", "/"): text for name, text in files.items()},
    }


def steps(toml: str, *names: str, shared_tests: str = "") -> dict[str, str]:
    """Return the files of a task of several steps, each of which wants its name in ``answer.txt``."""
    found = {"task.toml": toml + "".join(f'[[steps]]\nname = "{name}"\n{LEAST.get(name, "")}' for name in names)}
    found |= {"environment/Dockerfile": DOCKERFILE, "environment/data.txt": "hello\n"}
    for name in names:
        found[f"steps/{name}/instruction.md"] = f"Write {name} to answer.txt.\n"
        found[f"steps/{name}/solution/solve.sh"] = f"echo {name} > answer.txt\n"
        found[f"steps/{name}/tests/test.sh"] = CHECK.format(text=name, logs=LOGS)
    return found


LEAST = {"must": "min_reward = 1.0\n", "named": "[steps.min_reward]\nreward = 0.5\n"}
SEPARATE = '[verifier]\nenvironment_mode = "separate"\n'
NAMES = f"""[ -f answer.txt ] && style=1 || style=0
cmp -s answer.txt data.txt && tests=1 || tests=0
echo "{{\\"tests\\": $tests, \\"style\\": $style}}" > {LOGS}/reward.json
echo 7 > {LOGS}/reward.txt
"""
GOOD: Mapping[str, dict[str, str]] = {
    "plain": task(),
    "empty-toml": task(""),
    "older-keys": task('version = "1.0"\n[environment]\nmemory = "2G"\nstorage = "1G"\nallow_internet = false\n'),
    "unknown-keys": task('colour = "red"\n[agent]\nwings = 2\n[metadata]\ntags = ["a"]\n'),
    "canary": task(**{"instruction.md": "<!-- harbor-canary GUID 123 -->\n\nCopy data.txt to answer.txt.\n"}),
    "names": task(tests=NAMES),
    "env": task(
        '[environment.env]\nWORD = "${TURNGYM_NO_SUCH_VARIABLE:-hello}"\n[verifier.env]\nWANTED = "hello"\n'
        '[solution.env]\nOUT = "answer.txt"\n',
        tests=CHECK.format(text='"$WANTED"', logs=LOGS),
        solution='echo "$WORD" > "$OUT"\n',
    ),
    "dockerfile": task(
        **{
            "environment/Dockerfile": "# syntax\nFROM scratch AS x\nARG D=/app\nENV A=1 B='x y'\nWORKDIR $D/in\n"
            'LABEL a=b\nCOPY ["data.txt", "./"]\nCOPY da*.txt \\\n  ../copies/\nCMD ["sleep", "1"]\nUSER root\n'
        },
        tests="cmp ../copies/data.txt data.txt && cmp answer.txt data.txt && [ \"$A$B\" = '1x y' ] "
        f"&& echo 1 > {LOGS}/reward.txt || echo 0 > {LOGS}/reward.txt\n",
    ),
    "solution-files": task(solution='cp "$(dirname "$0")/words.txt" answer.txt\n', solution__words_txt="")
    | {"solution/words.txt": "hello\n"},
    "workdir": task('[environment]\nworkdir = "/app/deep"\n', solution="cp ../data.txt answer.txt\n"),
    "healthcheck": task('[environment.healthcheck]\ncommand = "test -f /app/data.txt"\n'),
    "no-dockerfile": {
        key: text for key, text in task(solution="echo hello > answer.txt\n").items() if "env" not in key
    },
    "steps-mean": steps("", "one", "two"),
    "steps-final": steps('multi_step_reward_strategy = "final"\n', "must", "named"),
    "steps-files": steps("", "one")
    | {"steps/one/workdir/setup.sh": "echo one > hint.txt\n", "steps/one/solution/solve.sh": "cp hint.txt answer.txt\n"}
    | {"tests/test.sh": "exit 1\n", "tests/other.sh": "true\n"},
    "separate": task(
        f'artifacts = ["/app/answer.txt"]\n{SEPARATE}'
        'collect = [{command = "cp answer.txt /logs/artifacts/copy.txt"}]\n',
        tests="cmp /logs/artifacts/copy.txt answer.txt && " + CHECK.format(text="hello", logs=LOGS),
    ),
    "separate-table": task('artifacts = [{source = "/app/answer.txt"}]\n[verifier.environment]\nmemory_mb = 512\n'),
    "separate-image": task('artifacts = ["/app/answer.txt"]\n' + SEPARATE)
    | {"tests/Dockerfile": "FROM debian\nWORKDIR /app\nCOPY test.sh /tests/test.sh\nENV W=hello\n"}
    | {"tests/test.sh": CHECK.format(text='"$W"', logs=LOGS)},
}
"""Name -> files of tasks where doing nothing gives 0 and the solution 1."""
UNFIT_REWARDS: Mapping[str, tuple[str, str]] = {
    "nan": (f"echo nan > {LOGS}/reward.txt", "'nan': expected a finite number"),
    "longer than a number": (f"printf 1%0200d 0 > {LOGS}/reward.txt", "expected a finite number"),
    "infinite": (f"echo '{{\"a\": 1e999}}' > {LOGS}/reward.json", "too large"),
    "text": (f"echo good > {LOGS}/reward.txt", "'good': expected a finite number"),
    "named-text": (f'echo \'{{"a": "1"}}\' > {LOGS}/reward.json', "expected an object of names and numbers"),
    "bare": (f"echo 1 > {LOGS}/reward.json", "expected an object of names and numbers"),
    "folder": (f"mkdir {LOGS}/reward.json; echo 1 > {LOGS}/reward.txt", "reward.json is not a regular file"),
    "link-out": (f"ln -s /etc/passwd {LOGS}/reward.txt", "reward.txt is not a regular file"),
    "none": ("true", "the verifier wrote no reward"),
    "late": ("sleep 60", "was not done in 0.5 seconds"),
}
"""Name -> commands of a verifier whose reward is none, and part of the message."""


def _link_out(folder: Path) -> None:
    (folder / "tests" / "passwd").symlink_to("/etc/passwd")


def _link_up(folder: Path) -> None:
    (folder / "environment" / "up").symlink_to("../../../secret")


def _folder_link(folder: Path) -> None:
    (folder / "solution" / "solve.sh").unlink()
    (folder / "solution").rmdir()
    (folder / "solution").symlink_to("/etc")


def _huge(folder: Path) -> None:
    with (folder / "tests" / "zeros").open("wb") as file:
        file.truncate(2**40)


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "tests" / "pipe")


def _text(name: str, text: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        write(folder, {name: text})

    return damage


HOSTILE: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "link-out": (_link_out, "leaves the folder"),
    "link-up": (_link_up, "leaves the folder"),
    "folder-link": (_folder_link, "is a symbolic link"),
    "huge": (_huge, "more than"),
    "pipe": (_pipe, "must be a regular file"),
    "no-toml": (_text("task.toml", "x = ["), "is not TOML"),
    "deep-toml": (_text("task.toml", "x = " + "[" * 30_000), "is not TOML"),
    "long-toml": (_text("task.toml", "#" * 70_000), "more than"),
    "kind": (_text("task.toml", "[agent]\ntimeout_sec = 'soon'\n"), "agent.timeout_sec in .* must be a number"),
    "step-name": (_text("task.toml", "[[steps]]\nname = '../../etc'\n"), "the name of a step"),
    "empty-prompt": (_text("instruction.md", "\n"), "is the prompt"),
    "gpu": (_text("task.toml", "[environment]\ngpus = 1\n"), "it needs a GPU"),
}
"""Name -> what makes a plain task broken or hostile, and part of the message."""
DOCKER_ONLY: Mapping[str, str] = {
    "RUN apt-get install -y curl": "its Dockerfile has RUN apt-get install -y curl",
    "COPY ../../secret /app/": "which is outside of its folder",
    "COPY nothing.txt /app/": "which is not in its folder",
    "COPY --from=other a b": "COPY --from=other",
    "COPY data.txt /usr/bin/ls": "writes to /usr/bin/ls",
    "FROM debian": "has several stages",
    "USER nobody": "changes the user to nobody",
    "ADD https://example.org/a.txt /app/": "ADD https://example.org/a.txt",
}
"""Line of a Dockerfile that Bubblewrap has no box for -> part of the message."""
