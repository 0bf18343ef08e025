"""SearchQA: answer a question by searching a corpus over several turns."""

from __future__ import annotations

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Annotated, ClassVar, Literal

import numpy as np

from turngym.envs.core import MaxTurns, Outcome
from turngym.envs.parsing.calls import harmless
from turngym.envs.search import datasets
from turngym.envs.search.answers import chosen_letter, exact_match, f1, normalise
from turngym.envs.search.client import connect
from turngym.envs.search.documents import Document, Hit
from turngym.envs.search.protocol import ANSWER, SEARCH, read, show, write
from turngym.envs.search.questions import KINDS, Question, draw_question
from turngym.envs.search.retriever import Retriever
from turngym.envs.search.step_rewards import SearchProgress, tool_efficiency
from turngym.envs.search.wide_match import normalise_wide
from turngym.envs.search.world import make_world, world_retriever
from turngym.envs.sets import PROCEDURAL, SetEnv
from turngym.envs.settings import worded
from turngym.envs.validation import require_running
from turngym.options import between, one_of
from turngym.types import JSONValue

_RULES = """Answer the question by searching. You may think first; then write one of:
{search}
{answer}
A search is answered with {top_k} passages. Give the answer itself, without explanation. You have {turns} turns; the \
last one is for the answer."""
_LONGEST = 1000


class SearchQA(SetEnv[Question]):
    """Answer a question by searching a corpus in a few turns.

    The episode terminates with an answer, right or wrong, and is truncated at ``max_turns``; a search in the last turn
    returns nothing. The reward of an answer is exact match or F1; success is an exact match after SQuAD's normalisation
    (for multiple choice: the right letter or the text of the right option). The score is the F1.

    >>> env = SearchQA(size=200, kind="1 hop")
    >>> question, info = env.reset(seed=0)
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> reward, env.turn
    (1.0, 2)
    """

    class Options(SetEnv.Options):
        dataset: str = PROCEDURAL
        """``"procedural"``, the name of a set in ``folder``, or what Hugging Face's ``datasets`` reads: ``hf:`` and a
        folder or a name of the hub, as in ``hf:hotpotqa/hotpot_qa#distractor``."""
        folder: str = ""
        """Folder of sets and corpora (see :mod:`turngym.envs.search.datasets`)."""
        corpus: str = "wiki"
        """Corpus of the folder to search, or ``hf:`` and a data set of passages."""
        kind: Annotated[str, one_of("mixed", *KINDS)] = "mixed"
        """Kind of procedural questions, such as ``"2 hops"``, or ``"mixed"``."""
        size: Annotated[int, between(100, 20000)] = 1000
        """Entities of the generated world, and its documents."""
        world_seed: Annotated[int, between(0, 10**9)] = 0
        """Seed of the generated world."""
        form: Literal["tags", "json"] = "tags"
        """Syntax of searches and answers."""
        engine: str = "auto"
        """Search engine: ``"auto"``, ``"tantivy"``, ``"bm25s"`` or ``"fts5"``; ``"dense"`` or ``"hybrid"`` (see
        :func:`~turngym.envs.search.retriever.make_retriever`)."""
        url: str = ""
        """A server to search instead, such as that of ``turngym serve-search``, or a collection of Qdrant, as in
        ``qdrant+http://127.0.0.1:6333/wiki``; the corpus must be the same."""
        top_k: Annotated[int, between(1, 20)] = 3
        """Passages per search."""
        passage_words: Annotated[int, between(10, 1000)] = 160
        """Words shown of a passage."""
        reward: Literal["em", "f1"] = "em"
        """Exact match, or F1."""
        match: Literal["published", "wide"] = "published"
        """``"published"``, SQuAD's normalisation, or ``"wide"``: Unicode forms, quotes, dashes, invisible signs and
        number words do not count either. Both drop punctuation as published, so that ``-5`` equals ``5``, and
        ``C++`` equals ``C``. Results name it among the options."""
        step_reward: Annotated[float, between(0, 100)] = 0.0
        """Weight of information gain less redundancy of each search (StepSearch: 0.6); 0 for none."""
        efficiency: bool = False
        """True if a right answer is worth less after more searches (OTC)."""
        max_turns: MaxTurns = 8

    options: Options

    file_options = worded("kind", "form", "reward", "match")
    finds_action = True

    item_noun: ClassVar[str] = "question"

    def setup(self) -> None:
        options = self.options
        self._options = (
            options.form,
            options.top_k,
            options.passage_words,
            options.reward,
            float(options.step_reward),
            options.efficiency,
        )
        self._forms = (normalise, normalise_wide) if options.match == "wide" else (normalise,)
        self._kinds = KINDS if options.kind == "mixed" else (options.kind,)
        self._world = make_world(options.size, options.world_seed) if options.dataset == PROCEDURAL else None
        self.items = None if self._world else datasets.read_set(options.folder, options.dataset, self.split)
        self._gold_texts: Mapping[str, Document] = {}
        if not options.url:
            local = (
                world_retriever(options.size, options.world_seed, options.engine)
                if self._world
                else datasets.open_corpus(options.folder, options.corpus, options.engine)
            )
            self._retriever: Retriever = local
            self._gold_texts = local.by_id
        else:
            self._retriever = connect(options.url)
            if options.step_reward:
                self._gold_texts = self._world.by_id if self._world else datasets.by_id(options.folder, options.corpus)
        self.instructions = _RULES.format(
            search=write(SEARCH, "words", options.form),
            answer=write(ANSWER, "text", options.form),
            top_k=options.top_k,
            turns=self.max_turns,
        )

    def begin(self, task: str | int | None) -> str:
        self._question = self.next_item(task)
        self._clear()
        letters = "".join(
            f"\n{letter}. {each}" for letter, each in zip(ascii_uppercase, self._question.choices, strict=False)
        )
        return f"Question: {harmless(self._question.text)}{harmless(letters)}"

    def generate_item(self, generator: np.random.Generator) -> Question:
        assert self._world is not None
        return draw_question(self._world, self._kinds[int(generator.integers(len(self._kinds)))], generator)

    def item_text(self, item: Question) -> str:
        return item.text

    def _clear(self) -> None:
        self._searches: list[str] = []
        self._found: list[tuple[Document, ...]] = []
        self._answer: str | None = None
        texts = self._gold_texts
        self._gains = SearchProgress([texts[name].contents for name in self._question.gold if name in texts])

    def apply_action(self, action: str) -> Outcome[str]:
        form = self._options[0]
        move = read(action, form)
        if move.tool == ANSWER:
            self._answer = move.content[:_LONGEST]
            return Outcome("Your answer is taken.", self._final_reward(), True, self._is_right())
        if move.tool == SEARCH and move.content:
            return self._search(move.content[:_LONGEST])
        problem = move.problem or "the search is empty: name words"
        return Outcome(f"That is no action; {problem}.{self._warning()}", action_is_valid=False)

    def _search(self, query: str) -> Outcome[str]:
        _, top_k, most_words, _, weight, _ = self._options
        if self.turn + 1 >= self.max_turns:
            return Outcome("No turns are left to read what a search finds.")
        hits = self._retriever.search([query], top_k)[0]
        self._searches.append(query)
        self._found.append(tuple(hit.document for hit in hits))
        gain, redundancy = self._gains.add([hit.document.contents for hit in hits]) if self._pays_steps else (0.0, 0.0)
        return Outcome(show(hits, most_words) + self._warning(), weight * (gain - redundancy))

    @property
    def _pays_steps(self) -> bool:
        """True if searches are rewarded: not where the passages with the answer are unknown (StepSearch)."""
        return bool(self._options[4] and self._question.gold)

    def _warning(self) -> str:
        is_next_to_last = self.turn + 2 == self.max_turns
        return "\n<warning>The next turn is the last: give your answer.</warning>" if is_next_to_last else ""

    def _is_right(self) -> bool:
        question, answer = self._question, self._answer or ""
        if question.choices:
            return any(chosen_letter(answer, question.choices, form) in question.answers for form in self._forms)
        return any(exact_match(answer, question.answers, form) for form in self._forms)

    def _final_reward(self) -> float:
        *_, kind, _, is_efficient = self._options
        worth = float(self._is_right()) if kind == "em" or self._question.choices else self.score()
        return worth * tool_efficiency(len(self._searches), self.max_turns - 1) if is_efficient else worth

    def progress(self) -> float:
        return float(self._success == 1)  # the remaining distance is unknown

    def score(self) -> float:
        if self._answer is None:
            return 0.0
        if self._question.choices:
            return float(self._is_right())
        return max(f1(self._answer, self._question.answers, form) for form in self._forms)

    def anchor(self) -> str:
        seen = sorted({document.id for found in self._found for document in found})
        return f"{self._question.text}\n{' '.join(seen)}\n{normalise(self._answer or '')}"

    def save_state(self) -> JSONValue:
        return {"question": self._question.as_json(), "searches": self._searches, "answer": self._answer}

    def load_state(self, state: JSONValue) -> None:
        self._question = Question.from_json(state["question"])
        self._clear()
        _, top_k, _, _, weight, _ = self._options
        for query in state["searches"]:
            hits: list[Hit] = self._retriever.search([query], top_k)[0]
            self._searches.append(query)
            self._found.append(tuple(hit.document for hit in hits))
            if weight:
                self._gains.add([hit.document.contents for hit in hits])
        self._answer = None if state["answer"] is None else str(state["answer"])

    def expert_action(self) -> str:
        """Return the oracle's move: the known searches one after the other, then the known answer.

        For a generated question each search names the next document on the way; for a data set it is the next
        sub-question with the earlier answers filled in, or the question itself.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        question = self._question
        planned = question.queries or (question.text,)
        missing = [query for query in planned if query[:_LONGEST] not in self._searches]
        if missing and self.turn + 1 < self.max_turns:
            return write(SEARCH, missing[0], self._options[0])
        return write(ANSWER, question.answers[0], self._options[0])

    @property
    def question(self) -> Question:
        """The question with its answers; not for agents."""
        return self._question

    def found_documents(self) -> tuple[Document, ...]:
        """Return the documents that were shown so far, each once."""
        return tuple(dict.fromkeys(document for found in self._found for document in found))
