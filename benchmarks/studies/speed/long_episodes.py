"""Long episodes: tokens of the prompt, what it still shows of what the next action needs, and time, per prompt mode.

    python benchmarks/studies/speed/long_episodes.py --episodes 6

No language model takes part. A scripted player walks the path of the expert, stretched to more than 200 turns: between
two actions of the expert it looks at other things. It acts on the text of its prompt alone: an action of the expert is
played once every word in it that an earlier observation showed stands in the prompt; else the last action that showed
the missing word is played again. If nothing can show it again, such as a word of the request, the player is stuck. The
rules do not count. Where the style asks for a summary or for notes, the player writes the names and numbers that it
sees, without knowing which are needed. Times are those of the processor, of building prompts alone.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from rich.progress import track

from turngym.agents.core import Agent, Request
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.completion import Completion
from turngym.agents.models.embedded import build_tokenizer
from turngym.agents.models.loading import TokenizerOnly
from turngym.agents.players.styled import StyledAgent
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.styles import make_style
from turngym.agents.sampling import Sampling
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.apps.dialect import CALL, Act
from turngym.envs.apps.functions import FUNCTIONS
from turngym.envs.tools.tool_schema import write_call
from turngym.wrappers.actions.action_format import action_format

LEAST, MOST = 250, 600
"""Turns of an episode without looking again, and after which the player gives up."""
LIMIT = 8192
VOCABULARY = 4096
PLACES = (10, 100, 200)
_WORD = re.compile(r"[\w@./-]{3,}")
_NAME = re.compile(r"[\w@./-]*[\d@/_][\w@./-]*")
_KEY = re.compile(r"key (([a-z]+)-[\w-]+)")
_PAGES, _NOTED, _SUMMED = 5, 12, 100


class Mode(NamedTuple):
    """A way to show a long episode: settings of prompts and a style."""

    prompt: Mapping[str, Any]
    style: str = ""


_CONVERSATION = {"mode": "conversation", "max_prompt_tokens": LIMIT}
MODES: Mapping[str, Mode] = {
    "conversation, no limit": Mode({"mode": "conversation", "max_prompt_tokens": 1_000_000}),
    "conversation, none": Mode({**_CONVERSATION, "fit": "none"}),
    "conversation, drop_oldest": Mode({**_CONVERSATION, "fit": "drop_oldest"}),
    "conversation, drop_middle": Mode({**_CONVERSATION, "fit": "drop_middle"}),
    "conversation, summary": Mode({**_CONVERSATION, "fit": "summary"}),
    "window, last 10 turns": Mode({"mode": "window", "history": 10, "max_prompt_tokens": LIMIT}),
    "style summary": Mode({"max_prompt_tokens": LIMIT}, "summary"),
    "style notes": Mode({"max_prompt_tokens": LIMIT}, "notes"),
}


class World(NamedTuple):
    """An environment, what to read first, and what to look at between actions of the expert."""

    env_id: str
    reads: Callable[[Any], Sequence[str]]
    look: Callable[[Any, Sequence[str], np.random.Generator], str]
    is_look: Callable[[Any, str], bool]


def _apps_look(env: Any, seen: Sequence[str], generator: np.random.Generator) -> str:
    """Return a call that lists a page of something in an account whose key was shown."""
    keys = dict.fromkeys(found for text in seen for found in _KEY.findall(text))
    calls: list[tuple[str, dict[str, str]]] = [("accounts_list", {})]
    for key, app in keys:
        listing = [each for each in FUNCTIONS.values() if each.app == app and each.verb.startswith("list")]
        calls += [(each.name, {"key": key}) for each in listing if set(each.parameters) <= {"page?", "page"}]
    name, given = calls[int(generator.integers(len(calls)))]
    return str(env.names.write(Act(CALL, name, {**given, "page": 1 + int(generator.integers(_PAGES))})))


def _apps_is_look(env: Any, action: str) -> bool:
    act = env.names.read(action)
    return action.startswith("docs") or (isinstance(act, Act) and act.kind == CALL and FUNCTIONS[act.name].is_look)


def _repo_reads(env: Any) -> list[str]:
    return [write_call("view", {"path": path}) for path in env.task.original]


def _repo_look(env: Any, seen: Sequence[str], generator: np.random.Generator) -> str:
    """Return a look at a file that is no module of the package."""
    others = sorted(path for path in env.task.files if path.startswith("tests/") or "/vendor/" in path)
    paths = [path for path in others if path.endswith(".py")]
    return write_call("view", {"path": paths[int(generator.integers(len(paths)))]})


WORLDS: Mapping[str, World] = {
    "Apps-v0": World("turngym/Apps-v0", lambda env: (), _apps_look, _apps_is_look),
    "Repo-v0": World("turngym/Repo-v0", _repo_reads, _repo_look, lambda env, action: '"edit"' not in action),
}


def words(text: str) -> set[str]:
    """Return the words of a text that can be looked for in a prompt.

    >>> sorted(words('call notes_show {"key": "notes-10-12", "note_id": 223}'))
    ['223', 'call', 'key', 'note_id', 'notes-10-12', 'notes_show']
    """
    return {found.strip("./-") for found in _WORD.findall(text)} - {""}


def names(text: str, most: int) -> list[str]:
    """Return names and numbers of a text, each once, the last ones.

    >>> names("9 found: id 223 of lev@mail.example, id 223", 2)
    ['lev@mail.example', '223']
    """
    return list(dict.fromkeys(reversed([found.strip("./-") for found in _NAME.findall(text)])))[:most][::-1]


class Due(NamedTuple):
    """An action of the expert, when it is due for the first time: words that it needs, and those in the prompt."""

    turn: int
    needed: int
    shown: int


@dataclass
class Player:
    """Decides from the text of a prompt, as a backend of an agent.

    Args:
        world: The world.
        env: Its environment, for the expert.
        tokenizer: The tokenizer of the agent.
        apart: Looks between two actions of the expert.
        seed: Of the looks.
    """

    world: World
    env: Any
    tokenizer: Any
    apart: int
    seed: int
    seen: list[tuple[str, str]] = field(default_factory=list)
    due: list[Due] = field(default_factory=list)
    prompts: list[int] = field(default_factory=list)
    again: int = 0
    is_stuck: bool = False
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self._generator = np.random.default_rng(self.seed)
        self._looks = 0
        self._reads = list(self.world.reads(self.env))
        self._known = set[str]()
        self._rules = words(self.env.instructions)

    def saw(self, action: str, observation: str) -> None:
        """Remember what an action has shown, to know what can be looked at again."""
        self.seen.append((action, observation))
        self._known |= words(observation)

    def generate(self, prompts: Sequence[Sequence[int]], uniforms: Any, sampling: Sampling) -> list[Completion]:
        """Return the completion of a prompt; its time does not count."""
        began = time.process_time()
        [prompt] = prompts
        text = str(self.tokenizer.decode(list(prompt)))
        answer = self._summary(text) if "Write the summary" in text[-600:] else self._answer(text, len(prompt))
        ids = (*self.tokenizer.encode(answer, add_special_tokens=False), self.tokenizer.eos_token_id)
        self.seconds += time.process_time() - began
        return [Completion(ids, (0.0,) * len(ids))]

    def _summary(self, text: str) -> str:
        return " ".join(names(text.partition(self.env.instructions)[2] or text, _SUMMED))

    def _answer(self, text: str, tokens: int) -> str:
        self.prompts.append(tokens)
        action = self._action(words(text))
        written = action_format("auto", self.env.finds_action).write(action)
        if "<note>TEXT</note>" not in text:
            return written
        fresh = " ".join(names(self.seen[-1][1], _NOTED))
        return f"<note>{fresh}</note>{written}" if fresh else written

    def _action(self, shown: set[str]) -> str:
        """Return the action of the expert if it is due and its words are shown, else a look."""
        if self._reads:
            return self._reads.pop(0)
        if self._looks < self.apart and len(self.seen) > 1:
            self._looks += 1
            return self.world.look(self.env, [text for _, text in self.seen], self._generator)
        action = str(self.env.expert_action())
        needed = self._needed(action)
        if self._looks == self.apart:
            self.due.append(Due(len(self.seen) - 1, len(needed), len(needed & shown)))
            self._looks += 1
        chosen = self._shown_first(action, shown)
        if chosen == action:
            self._looks = 0
        else:
            self.again += 1
        return chosen

    def _needed(self, action: str) -> set[str]:
        return (words(action) & self._known) - self._rules

    def _shown_first(self, action: str, shown: set[str], depth: int = 0) -> str:
        """Return the action if all that it needs is shown, else one that shows what is missing."""
        missing = sorted(self._needed(action) - shown)
        if not missing or depth == PLACES[0]:
            return action
        for old, observation in reversed(self.seen):
            if missing[0] in words(observation) and old and self.world.is_look(self.env, old):
                return self._shown_first(old, shown, depth + 1)
        self.is_stuck = True
        return action


def agent_of(mode: Mode, player: Player) -> Agent:
    """Return an agent whose backend is the player."""
    tokenizer = player.tokenizer
    vocabulary = TokenizerOnly(tokenizer, frozenset({int(tokenizer.eos_token_id)}))
    prompt = PromptConfig.build("the prompt", dict(mode.prompt))
    agent = ModelAgent(vocabulary, player.generate, prompt, Sampling(max_new_tokens=512))
    return StyledAgent(make_style(mode.style), agent) if mode.style else agent


def played(world: World, mode: Mode, seed: int, tokenizer: Any, apart: int) -> dict[str, Any]:
    """Play an episode in a mode and return its figures."""
    env: Any = gymnasium.make(world.env_id, max_turns=MOST)
    observation, info = env.reset(seed=seed)
    player = Player(world, env, tokenizer, apart, seed)
    player.saw("", observation)
    agent, times, steps, ended = agent_of(mode, player), list[float](), list[float](), "turns"
    while info["success"] < 0 and not player.is_stuck and len(times) < MOST:
        request = Request(0, 0, len(times), observation, info, env.instructions, None, env.finds_action)
        began, inside = time.process_time(), player.seconds
        [decision] = agent.act([request])
        times.append(time.process_time() - began - (player.seconds - inside))
        if decision.too_long or decision.fault:
            ended = "context" if decision.too_long else decision.fault
            break
        began = time.process_time()
        observation, _, _, _, info = env.step(decision.action)
        steps.append(time.process_time() - began)
        player.saw(decision.action, observation)
    env.close()
    solved = info["success"] == 1
    return {
        "solved": solved,
        "end": "solved" if solved else "stuck" if player.is_stuck else ended,
        "turns": len(steps),
        "again": player.again,
        "due": player.due,
        "tokens": player.prompts,
        "times": times,
        "steps": steps,
    }


def _near(values: Sequence[float], place: int) -> Sequence[float]:
    return values[max(place - 5, 0) : place + 5] if len(values) >= place else ()


def _middle(episodes: Sequence[Mapping[str, Any]], name: str, place: int, scale: float = 1.0) -> float | None:
    """Return the median of a figure around a turn; None if fewer than half of the episodes reached it."""
    reached = [_near(each[name], place) for each in episodes]
    found = [value for values in reached for value in values]
    return round(statistics.median(found) * scale, 3) if sum(map(bool, reached)) * 2 >= len(reached) else None


def figures(episodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a mode over its episodes."""
    dues = [Due(*due) for each in episodes for due in each["due"] if due[0] >= PLACES[1]]
    needed = sum(due.needed for due in dues)
    tokens = [value for each in episodes for value in each["tokens"]]
    return {
        "episodes": len(episodes),
        "solved": statistics.mean(float(each["solved"]) for each in episodes),
        "ends": {end: sum(each["end"] == end for each in episodes) for end in sorted({e["end"] for e in episodes})},
        "turns": statistics.median(each["turns"] for each in episodes),
        "looked_again": statistics.median(each["again"] for each in episodes),
        "words_needed": needed,
        "words_shown": round(sum(due.shown for due in dues) / needed, 4) if needed else None,
        "tokens_median": statistics.median(tokens),
        "tokens_most": max(tokens),
        "tokens_at": {str(place): _middle(episodes, "tokens", place) for place in PLACES},
        "prompt_ms_at": {str(place): _middle(episodes, "times", place, 1000) for place in PLACES},
        "step_ms_at": {str(place): _middle(episodes, "steps", place, 1000) for place in PLACES},
    }


def expert_play(world: World, seeds: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    """Yield for each seed how many looks between the expert's actions make an episode long, and its texts."""
    for seed in seeds:
        env: Any = gymnasium.make(world.env_id, max_turns=MOST)
        observation, info = env.reset(seed=seed)
        texts = [env.instructions, observation]
        reads = list(world.reads(env))
        for count in range(MOST):
            action = reads[count] if count < len(reads) else env.expert_action()
            observation, _, _, _, info = env.step(action)
            texts += [action, observation]
            if info["success"] >= 0:
                break
        env.close()
        yield -(-(LEAST - count) // (count + 1 - len(reads))), texts


def main() -> None:
    """Play all modes and write the figures."""
    parser = arguments(__doc__, "long_episodes.json")
    parser.add_argument("--episodes", type=int, default=10, help="episodes of each mode, with seeds from 0")
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    given = parser.parse_args()
    results: dict[str, Any] = {}
    for name in given.worlds:
        world, seeds = WORLDS[name], range(given.episodes)
        known = list(expert_play(world, seeds))
        tokenizer = build_tokenizer([text for _, texts in known for text in texts], VOCABULARY)
        runs = [(mode, seed) for mode in MODES for seed in seeds]
        found: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
        for mode, seed in track(runs, name):
            found[mode].append(played(world, MODES[mode], seed, tokenizer, known[seed][0]))
        results[name] = {mode: figures(episodes) for mode, episodes in found.items()}
    write_result(given.out, {"limit": LIMIT, "worlds": results}, "numpy", "tokenizers", "transformers")


if __name__ == "__main__":
    main()
