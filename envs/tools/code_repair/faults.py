"""The faults that tasks are made of: which changes of which program make which of its inputs fail.

The table lies next to the code and was made by running every changed program on every input in a sandbox:
``python -m turngym.envs.tools.code_repair.faults`` makes it again. A change that no input shows, or that never ends, is
left out.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from turngym.envs.tools.code_repair.grading import passed, run_in
from turngym.envs.tools.code_repair.mutations import Change, apply, changes
from turngym.envs.tools.code_repair.programs import Program, programs
from turngym.envs.tools.code_repair.values import encode
from turngym.envs.tools.sandbox import Limits, SandboxSession, make_sandbox
from turngym.seeding import stream

TABLE = Path(__file__).parent / "data" / "faults.json"
_PAIRS = 30
_SECONDS = 1.0


class Fault(NamedTuple):
    """One or two changes of a program.

    Args:
        program: Name of the program.
        changes: Description of the change.
        failing: Numbers of the inputs that show it.
    """

    program: str
    changes: tuple[Change, ...]
    failing: tuple[int, ...]

    @property
    def source(self) -> str:
        """The program with the fault."""
        return apply(programs()[self.program].source, self.changes)


@cache
def faults(count: int) -> tuple[Fault, ...]:
    """Return the faults of one or two changes.

    >>> len(faults(1)) > 300, len(faults(2)) > 500
    (True, True)
    """
    table: Mapping[str, Any] = json.loads(TABLE.read_text("utf8"))
    found = []
    for name, entry in table.items():
        for parts, mask in entry["faults"]:
            if len(parts) == count:
                failing = tuple(place for place in range(len(programs()[name].inputs)) if mask >> place & 1)
                found.append(Fault(name, tuple(Change(*part) for part in parts), failing))
    return tuple(found)


def fingerprint(program: Program) -> str:
    """Return a hash of a program and its inputs: the table is made for this text and no other."""
    content = json.dumps([program.source, [encode(values) for values in program.inputs]])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def prove(session: SandboxSession, program: Program, source: str) -> tuple[int, bool]:
    """Run a changed program on every input.

    Returns:
        The inputs that fail, as bits, and whether every call came to an end of its own.
    """
    inputs = [[encode(value) for value in values] for values in program.inputs]
    ran, _ = run_in(session, source, program.name, inputs, _SECONDS, 0)
    is_passed = passed(ran, program.outputs)
    has_ended = not any(one.problem.startswith(("out of time", "too much", "its process", "not run")) for one in ran)
    return sum(1 << place for place, fine in enumerate(is_passed) if not fine), has_ended


def make_table(session: SandboxSession) -> dict[str, Any]:
    """Return the table, made by running everything."""
    table = {}
    for name, program in programs().items():
        assert prove(session, program, program.source) == (0, True), f"{name} itself is wrong"
        found = [[list(parts), mask] for parts, mask in _proven(session, program)]
        table[name] = {"program": fingerprint(program), "faults": found}
    return table


def _proven(session: SandboxSession, program: Program) -> Iterator[tuple[tuple[Change, ...], int]]:
    single = []
    for change in changes(program.source):
        mask, has_ended = prove(session, program, apply(program.source, (change,)))
        if mask and has_ended:
            single.append(change)
            yield (change,), mask
    pairs = [pair for pair in itertools.combinations(single, 2) if pair[0].end <= pair[1].start]
    order = stream("pairs", program.name).permutation(len(pairs))[:_PAIRS]
    for place in sorted(map(int, order)):
        mask, has_ended = prove(session, program, apply(program.source, pairs[place]))
        if mask and has_ended:
            yield pairs[place], mask


def main() -> None:
    """Write the table."""
    with make_sandbox(limits=Limits(cpu_seconds=100_000)).session() as session:
        table = make_table(session)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table.items()) + "\n}\n")


if __name__ == "__main__":
    main()
