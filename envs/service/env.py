"""Service: serve a caller with tools under a policy."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.instances import canonical_text
from turngym.envs.service.acts import FORMAT, Vocabulary, vocabulary, write
from turngym.envs.service.candidates import candidates
from turngym.envs.service.clinic import CLINIC
from turngym.envs.service.conduct import TEXTS
from turngym.envs.service.domain import Act, Domain, Policy, document, read_policy
from turngym.envs.service.expert import next_act
from turngym.envs.service.script import Script, build
from turngym.envs.service.session import LEFT, Session
from turngym.envs.service.shop import SHOP
from turngym.envs.settings import worded
from turngym.envs.tools.tool_schema import CALL_MARK, ToolSet, write_call
from turngym.envs.validation import NUMBERS, refuse_task, require_running, saved_number, saved_texts
from turngym.options import between, one_of
from turngym.types import JSONValue

DOMAINS = {each.name: each for each in (SHOP, CLINIC)}
_VARIANTS = 40
_RULES = """You are the agent at {title}. A caller talks to you; you have tools and a policy, shown at the start.
{tools_check} Answer with one action, optionally followed by | and words for the caller:
{format}
Slots: {slots}. Facts to tell: {keys}.
Reasons to refuse: {refusals}. Reasons to transfer: {transfers}.
Tools: {tools}. Sums are in cents.
You have {turns} turns. You succeed if, in the end, everything that the caller wants and the policy allows has
been done and nothing else, what must be told has been told, and no rule of the policy was broken."""
_TALK = """You are the agent at {title}. A caller talks to you; you have tools and a policy, shown at the start.
{tools_check} Call one tool per turn. Sums are in cents.
You have {turns} turns. You succeed if, in the end, everything that the caller wants and the policy allows has
been done and nothing else, what must be told has been told, and no rule of the policy was broken."""
_FREE = "The tools do not check the policy: you must."
_STRICT = "The tools refuse what the policy forbids; what you say is for you to check."


class Service(TextEnv[str]):
    """Serve a caller by a policy, with tools over the records of a company.

    The caller is scripted and has a hidden goal with a fallback. Callers may not know a detail, give it wrongly or only
    when asked twice, have a price limit, make false claims, ask about the accounts of others, and lose patience. The
    parameters of the policy differ between instances. An episode succeeds if the final records are one of the
    acceptable states, the caller got every fact that the policy requires, forbidden wishes were refused for the right
    reason after reading the records, and no rule was broken. The reward is 1 for success and 0 for anything else, or
    with ``reward="dense"`` the change of the progress. Progress is the share of steps done: finding the customer,
    hearing each wish, and giving each required fact; every violation counts as one more step that is not done.

    ``info["legal_actions"]`` lists acts that follow from what is known by then; any others of the rules are accepted
    too.

    The caller's answers are a function of its record and of the acts, so that equal actions give equal episodes: five
    runs of 100 episodes, in processes with other locales and seeds of hashes, are equal to the byte, where equal runs
    of tau2 lie 8 to 9 points apart (sierra-research/tau2-bench, issue 540). The expert solves every caller's script:
    of 1,000 test episodes none failed because of the caller [0, 0.4 %], and of tau2's failed retail runs 26 to 30 % did
    (pull request 392).

    >>> env = Service()
    >>> observation, info = env.reset(seed=0)
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> observation, reward
    ('The conversation has ended.', 1.0)
    """

    class Options(TextEnv.Options):
        domain: Annotated[str, one_of(*DOMAINS)] = "shop"
        """The desk: ``"shop"`` or ``"clinic"``."""
        customers: Annotated[int, between(1, 50)] = 4
        """Number of customers in the records."""
        wishes: Annotated[int, between(1, 3)] = 2
        """Maximum number of wishes of a caller, without those that replace a refused one."""
        acts: Literal["shown", "hidden"] = "shown"
        """``"shown"`` if the acts of the caller follow the words, as in ``inform(zip=48213)``, or only the words."""
        strict_tools: bool = False
        """True if tools refuse calls that break the policy, and tell the rule; these are then no violations."""
        reward: Literal["sparse", "dense"] = "sparse"
        """``"sparse"`` for 1 at a success, ``"dense"`` for the change of the progress in every turn."""
        max_turns: MaxTurns = 50

    options: Options
    file_options = worded("domain", "acts", "reward")

    def setup(self) -> None:
        options = self.options
        self._domain: Domain = DOMAINS[options.domain]
        self._words: Vocabulary = vocabulary(self._domain)
        self._pool = (
            np.random.default_rng(0),
            np.random.default_rng(0),
        )  # set to the start of a stream for every instance
        self._log: list[str] = []
        words, domain = self._words, self._domain
        check = _STRICT if options.strict_tools else _FREE
        tools = "; ".join(f"{name}({', '.join(each.parameters['properties'])})" for name, each in words.tools.items())
        self.instructions = _RULES.format(
            title=domain.title,
            format=FORMAT,
            slots=", ".join(words.slots),
            keys=", ".join(words.keys),
            refusals=", ".join(words.refusals),
            transfers=", ".join(words.transfers),
            tools=tools,
            tools_check=check,
            turns=self.max_turns,
        )
        rules = _TALK.format(title=domain.title, tools_check=check, turns=self.max_turns)
        self.native_tools = ToolSet(tuple(each.schema for each in words.native.values()), rules)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._enter(self.draw(lambda generator: self._script(int(generator.integers(NUMBERS)), 0), self._text_of))
        return self._opening

    def _script(self, number: int, variant: int) -> Script:
        return build(self._domain, self._pool, number, variant, self.options.customers, self.options.wishes)

    def _text_of(self, script: Script) -> str:
        caller = vars(script.caller)
        return canonical_text([self._domain.name, script.policy, script.rows, script.customer, caller])

    def _enter(self, script: Script) -> None:
        options = self.options
        self._script_now = script
        self._session = Session(self._domain, script, options.acts == "shown", options.strict_tools)
        self._document = document(self._domain, TEXTS, script.policy)
        self._opening = f"Day {script.policy['today']}. Policy:\n{self._document}\n{self._session.opening}"
        self._log = []
        self._done = 0.0
        self._know()

    def _know(self) -> None:
        """Compute what info shows after a change of knowledge."""
        session = self._session
        self._known = "\n".join([self._opening, *sorted(f"{key}: {text}" for key, text in session.view.facts.items())])
        self._legal: tuple[str, ...] = ()
        self._done = session.progress()

    def apply_action(self, action: str) -> Outcome[str]:
        act = self._words.read(action)
        if isinstance(act, str):
            return Outcome(f"That is no action: {act}.", action_is_valid=False)
        before = self._done
        observation = self._perform(act)
        session = self._session
        is_over = bool(session.ended)
        success = is_over and session.ended != LEFT and session.is_success()
        reward = self._done - before if self.options.reward == "dense" else float(success)
        return Outcome(observation, reward, is_over, success)

    def _perform(self, act: Act) -> str:
        self._log.append(_logged(act))
        observation = self._session.perform(act)
        self._know()
        return observation

    def anchor(self) -> str:
        return self._known

    def legal_actions(self) -> tuple[str, ...]:
        if not self._legal:
            acts = candidates(self._domain, self._words, self._script_now.policy, self._session.view)
            self._legal = (*self._words.always, *dict.fromkeys(map(write, acts)))
        return self._legal

    def progress(self) -> float:
        return self._done

    def turn_columns(self) -> dict[str, float]:
        return {"violations": float(self._session.violations.total())}

    @property
    def session(self) -> Session:
        """The conversation with its solution and violations; hidden from agents."""
        return self._session

    def expert_action(self) -> str:
        """Return the next action of an expert that reads the policy and knows what the agent knows.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return write(next_act(self._domain, _policy_in(self._domain, self._opening), self._session.view))

    def resample_hidden(self) -> bool:
        """Let another caller, with another goal and memory, have said the same so far."""
        script, log = self._script_now, self._log
        words = self._replayed(script, log)
        first = int(self.np_random.integers(1, 2**30))
        for variant in range(first, first + _VARIANTS):
            if self._replayed(other := self._script(script.number, variant), log) == words:
                self._restart(other, log)
                return True
        self._restart(script, log)
        return False

    def _replayed(self, script: Script, log: list[str]) -> list[str]:
        self._enter(script)
        return [self._opening, *(self._session.perform(_act_of(self._words, each)) for each in log)]

    def _restart(self, script: Script, log: list[str]) -> None:
        self._enter(script)
        for each in log:
            self._perform(_act_of(self._words, each))
        self.instance = self._text_of(script)

    def save_state(self) -> JSONValue:
        return {"number": self._script_now.number, "variant": self._script_now.variant, "acts": list(self._log)}

    def load_state(self, state: JSONValue) -> None:
        number, variant = saved_number(state["number"]), saved_number(state["variant"])
        log = saved_texts(state["acts"], self.turn)
        script, instance = self._script(number, variant), self.instance
        if self._text_of(script) != instance:
            raise ValueError("the instance is another one")
        self._restart(script, log)


def _logged(act: Act) -> str:
    if act.kind == "call":
        return write_call(act.name, act.arguments)
    if act.kind == "propose":
        return write_call(act.kind, {"tool": act.name, "arguments": act.arguments})
    if act.kind == "tell":
        return write_call(act.kind, {"key": act.name, **act.arguments})
    keys = {"ask": "slot", "refuse": "reason", "transfer": "reason"}
    return write_call(act.kind, {keys[act.kind]: act.name} if act.name else {})


def _act_of(words: Vocabulary, text: str) -> Act:
    act = words.read(text) if text.startswith(CALL_MARK) else text
    if isinstance(act, str):
        raise ValueError(f"the act {act[:100]!r}")
    return act


@lru_cache(maxsize=64)
def _policy_in(domain: Domain, opening: str) -> Policy:
    """Return the parameters that the first observation states."""
    head, _, text = opening.partition(". Policy:\n")
    return {**read_policy(domain, TEXTS, text), "today": int(head.removeprefix("Day "))}
