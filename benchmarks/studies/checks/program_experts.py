"""Agent programs whose model writes what the environment's solver does, in calls of the programs' own tools.

A random model never writes a call. These episodes show that the tools of a program reach the environment, and are
demonstrations that a small model can learn the calls from.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turngym.agents.core import Decision, EagerAgent, Request
from turngym.agents.episodes.rollout import rollout
from turngym.agents.gateway import Gateway, GatewayLimits
from turngym.agents.gateway.programs import ProgramAgent, ProgramConfig, playing, with_tokens
from turngym.agents.models.completion import Completion
from turngym.agents.models.loading import LanguageModel
from turngym.agents.players.expert import ExpertAgent
from turngym.agents.sampling import Sampling
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.tools.harbor.calls import SUBMIT, read_action
from turngym.envs.vector import TextVectorEnv, make_vec

EXAMPLES = Path(__file__).parents[3] / "trainers" / "integrations" / "examples"
_LONGEST = 2000


def tool_call(name: str, **arguments: str) -> str:
    """Return a call as a model without a format of its own for tools writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


LOOK = tool_call("bash", command="cat program.py")


def repair_calls(action: str, observation: str) -> tuple[str, ...]:
    r"""Return the commands that show a program, turn that of an observation into that of an action, and submit it.

    >>> repair_calls("<code>\nc\n</code>", "```python\na\n```")[1].split("\n")[1][30:]
    '{"command": "sed -i \'1c\\\\c\' program.py\\nsubmit"}}'
    """
    right = action.partition("<code>")[2].partition("</code>")[0].strip("\n").split("\n")
    wrong = observation.partition("```python\n")[2].partition("\n```")[0].split("\n")
    if len(right) != len(wrong) or any("\\" in line for line in right):
        text = "\n".join(right)
        return LOOK, tool_call("bash", command=f"cat > program.py <<'END'\n{text}\nEND\nsubmit")
    pairs = enumerate(zip(right, wrong, strict=True), 1)
    changes = [f"{line}c\\{new}" for line, (new, old) in pairs if new != old]
    edits = [f"sed -i {shlex.quote(change)} program.py" for change in changes]
    return LOOK, tool_call("bash", command="\n".join([*edits, "submit"]))


def shell_calls(action: str, observation: str) -> tuple[str, ...]:
    r"""Return the call of mini-swe-agent's tool that a turn in a shell is; it ends its work by printing a line.

    >>> shell_calls("<bash>ls</bash>", "")
    ('<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>',)
    """
    call = read_action(action, "tags")
    ends = call.tool == SUBMIT
    return (tool_call("bash", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" if ends else call.content),)


def search_calls(action: str, observation: str) -> tuple[str, ...]:
    r"""Return the call of the tool that a turn of SearchQA is.

    >>> search_calls("<search>a river</search>", "")
    ('<tool_call>\n{"name": "search", "arguments": {"words": "a river"}}\n</tool_call>',)
    """
    if "<search>" in action:
        return (tool_call("search", words=action.partition("<search>")[2].partition("</search>")[0]),)
    return (tool_call("final_answer", answer=action.partition("<answer>")[2].partition("</answer>")[0]),)


def _household_calls(action: str, observation: str) -> tuple[str, ...]:
    """Return the call of the tool that a turn of Household is."""
    return (tool_call("act", command=action),)


@dataclass(frozen=True)
class AgentProgram:
    """A program of the examples.

    Args:
        framework: What it is made with.
        script: Its file.
        env: What it plays.
        suite: What it is evaluated on.
        writes: The answers of a model that are an action of the solver, given the first observation.
        words: Further words of its command.
    """

    framework: str
    script: str
    env: str
    suite: str
    writes: Callable[[str, str], tuple[str, ...]]
    words: str = ""

    def command(self, python: str) -> str:
        """Return the command that starts it; ``-E`` since a folder ``agents`` on PYTHONPATH hides the SDK's package."""
        return f"{python} -E {EXAMPLES / self.script} {self.words}".strip()


PROGRAMS = {
    "mini-swe-agent": AgentProgram(
        "mini-swe-agent", "mini_swe_repair.py", "turngym/CodeRepair-v0", "code-repair", repair_calls
    ),
    "mini-swe-agent, Repo": AgentProgram(
        "mini-swe-agent", "mini_swe_repo.py", "turngym/RepoShell-v0", "repo", shell_calls
    ),
    "smolagents": AgentProgram("smolagents", "smolagents_search.py", "turngym/SearchQA-v0", "searchqa", search_calls),
    "openai-agents": AgentProgram(
        "openai-agents",
        "agents_sdk_household.py",
        "turngym/Household-v0",
        "household",
        _household_calls,
    ),
    "openai-agents, chat completions": AgentProgram(
        "openai-agents",
        "agents_sdk_household.py",
        "turngym/Household-v0",
        "household",
        _household_calls,
        "--chat",
    ),
    "openai": AgentProgram(
        "openai",
        "openai_agent.py",
        "turngym/Household-v0",
        "household",
        lambda action, observation: (f"<action>{action}</action>",),
    ),
}


class ProgramExpert(EagerAgent):
    """Plays one environment with programs, and has their model write the solver's actions.

    Args:
        model: Whose tokenizer and chat template are used.
        program: The program.
    """

    def __init__(self, model: LanguageModel, program: AgentProgram) -> None:
        self.program = program
        self.gateway = Gateway(model, self._sample, limits=GatewayLimits(max_new_tokens=_LONGEST, chunk=_LONGEST))
        self.programs: ProgramAgent | None = None
        self._expert = ExpertAgent()
        self._model = model
        self._first = ""
        self._texts: tuple[str, ...] = ("",)

    def attach(self, vector: TextVectorEnv) -> None:
        """Set the vector, of one slot, whose solver is used."""
        self._expert.attach(vector)

    def _sample(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        text, self._texts = self._texts[0], self._texts[1:] or self._texts
        ids = (*self._model.tokenizer.encode(text, add_special_tokens=False), min(self._model.stop_ids))
        return [Completion(ids, (0.0,) * len(ids))] * len(prompts)

    def begin(self, requests: Sequence[Request]) -> None:
        """Ask the solver, and go on with the program."""
        assert self.programs is not None and len(requests) == 1
        if not self._first:
            self._first = requests[0].observation
        (decision,) = self._expert.act(requests)
        self._texts = self.program.writes(decision.action, self._first)
        self.programs.begin(requests)

    def decided(self, wait: bool) -> list[tuple[Request, Decision]]:
        """Return the actions of the program."""
        assert self.programs is not None
        return self.programs.decided(wait)

    def forget(self, episode: int) -> None:
        """Tell the program that its episode has ended."""
        assert self.programs is not None
        self._first = ""
        self.programs.forget(episode)

    def abandon(self) -> None:
        """End all programs."""
        assert self.programs is not None
        self.programs.abandon()


def expert_episodes(
    model: LanguageModel, program: AgentProgram, python: str, seeds: Sequence[int], **options: Any
) -> tuple[list[Trajectory], dict[str, float]]:
    """Play episodes of a program with the solver behind its model, one after the other.

    Args:
        model: Whose tokenizer and chat template are used.
        program: The program.
        python: The interpreter that has its packages.
        seeds: The episodes.
        **options: Options of the environment.

    Returns:
        The episodes with the calls of the program as turns, and what became of the tokens of all calls.
    """
    expert = ProgramExpert(model, program)
    vector = make_vec(program.env, 1, autoreset_mode="disabled", **options)
    try:
        with playing(expert.gateway, ProgramConfig(command=program.command(python))) as programs:
            expert.programs = programs
            specs = [EpisodeSpec(number, seed, number) for number, seed in enumerate(seeds)]
            played = rollout(vector, expert, specs, final_prompts=False)
            programs.settle()
            found = [with_tokens(each, programs.played[each.spec.episode]) for each in played]
            return found, expert.gateway.report()
    finally:
        vector.close()
