"""Tools for agents: model-written code in a sandbox.

``math_python``, ``code_repair``, ``questions``, ``harbor``, ``terminal`` and ``repo`` are the environments, ``sandbox``
runs what models write, ``calls`` reads tool calls, ``problems`` and ``math_answers`` are the mathematics,
``programs``, ``faults`` and ``grading`` the programming.
"""

from turngym.envs.registration import Spec

_CODE = "turngym.envs.tools.code_repair:CodeRepair"
_MATH = "turngym.envs.tools.math_python:MathPython"
_HARBOR = "turngym.envs.tools.harbor:Harbor"
_REPO = "turngym.envs.tools.repo:Repo"
_TERMINAL = "turngym.envs.tools.terminal:Terminal"
_QUESTIONS = "turngym.envs.tools.questions:Questions"
SPECS: dict[str, Spec] = {
    "turngym/MathPython-v0": Spec(_MATH, {}, "Solve a mathematical problem with a Python interpreter."),
    "turngym/MathPythonEasy-v0": Spec(_MATH, {"level": 1}, "Solve an easy mathematical problem with an interpreter."),
    "turngym/MathPythonHard-v0": Spec(_MATH, {"level": 3}, "Solve a hard mathematical problem with an interpreter."),
    "turngym/MathPythonNoTool-v0": Spec(
        _MATH, {"level": 1, "tool": False, "max_turns": 3}, "Solve an easy mathematical problem without help."
    ),
    "turngym/CodeRepair-v0": Spec(_CODE, {}, "Find the fault in a small program, helped by examples and tests."),
    "turngym/CodeRepairHard-v0": Spec(_CODE, {"faults": 2}, "Find two faults in a small program."),
    "turngym/CodeWriting-v0": Spec(_CODE, {"mode": "write"}, "Write a small program that passes hidden tests."),
    "turngym/Questions-v0": Spec(_QUESTIONS, {}, "Answer questions of your own file or data set, with tools."),
    "turngym/Terminal-v0": Spec(_TERMINAL, {}, "Do a task in a shell: files, logs, archives, git, make and more."),
    "turngym/TerminalEasy-v0": Spec(
        _TERMINAL, {"level": 1, "reward": "dense"}, "Do a small task in a shell, rewarded for each part of it."
    ),
    "turngym/TerminalHard-v0": Spec(
        _TERMINAL, {"level": 3, "tasks": 2, "max_turns": 40}, "Do two large tasks in a shell."
    ),
    "turngym/Repo-v0": Spec(_REPO, {}, "Repair, complete or adapt a repository of several modules, with hidden tests."),
    "turngym/RepoEasy-v0": Spec(
        _REPO, {"level": 1, "kind": "fault", "reward": "dense"}, "Repair one fault of a named module in a repository."
    ),
    "turngym/RepoShell-v0": Spec(_REPO, {"tools": "shell"}, "Work on a repository with a shell alone."),
    "turngym/RepoHard-v0": Spec(
        _REPO, {"level": 3, "max_turns": 60}, "Work on a large repository whose tests show nothing wrong."
    ),
    "turngym/Harbor-v0": Spec(_HARBOR, {}, "Do the tasks of Harbor folders, such as Terminal-Bench's, in a shell."),
}
