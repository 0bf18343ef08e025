"""The files of a Harbor task that works, to build another one from."""

from __future__ import annotations

from collections.abc import Mapping

HARBOR: Mapping[str, str] = {
    "task.toml": """schema_version = "1.4"

[task]
name = "my/{name}"

[agent]
timeout_sec = 300

[verifier]
timeout_sec = 60

[environment]
cpus = 1
memory_mb = 1024
network_mode = "no-network"
""",
    "instruction.md": """/app/words.txt has a word on each line. Write the words that occur more than once to \
/app/repeated.txt, each once, one a line, in alphabetical order. Leave /app/words.txt as it is.
""",
    "environment/Dockerfile": """FROM debian:bookworm-slim
WORKDIR /app
COPY words.txt .
""",
    "environment/words.txt": "pear\nfig\napple\nfig\nplum\napple\nkiwi\nfig\n",
    "solution/solve.sh": """#!/bin/bash
sort words.txt | uniq -d > repeated.txt
""",
    "tests/test.sh": """#!/bin/bash
# Runs after the agent, writes the reward: 1 if everything holds, else 0. The agent has not seen these files.
# But it can make links to where they will be, and a comparison follows links: only a regular file counts that has
# no other name and is where its path says.
is_same() {
    [ -f "$1" ] && [ "$(realpath "$1")" = "$1" ] && [ "$(stat -c %h "$1")" = 1 ] && cmp -s "$1" "$2"
}
reward=0
if is_same /app/repeated.txt /tests/repeated.txt && is_same /app/words.txt /tests/words.txt; then
    reward=1
fi
echo $reward > /logs/verifier/reward.txt
""",
    "tests/repeated.txt": "apple\nfig\n",
    "tests/words.txt": "pear\nfig\napple\nfig\nplum\napple\nkiwi\nfig\n",
}
"""Path in the folder of the task -> text, where ``{name}`` is the name of the folder."""
