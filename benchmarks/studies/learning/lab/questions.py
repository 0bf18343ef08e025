"""A world of questions over several hops, with StepSearch's rewards for single searches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lab.worlds import Integers, Numbers, Step, World
from turngym.envs.search.step_rewards import similarity
from turngym.seeding import stream


@dataclass(frozen=True)
class Questions(World):  # type: ignore[misc]  # lab is found at run time alone
    """Questions whose answer stands at the end of a chain of documents.

    A question names an entity. Its document mentions several others; which of them leads on depends on the question,
    and the document of the last one of the chain holds the answer. The actions are to search for a mention of the last
    document, by its place, to search for the question's entity, and to answer from the last document, which ends the
    episode. The policy sees the question and the last document.

    The reward is 1 for the right answer. ``gain`` adds StepSearch's information gain of each search times it, with the
    documents of the chain as the gold passages, and ``penalty`` takes away its redundancy times it.

    Args:
        hops: Documents of a chain.
        questions: How many questions there are.
        documents: How many documents there are, at most 16.
        mentions: Entities that a document mentions.
        limit: Turns of an episode.
        gain: Weight of the information gain; the source has 0.6.
        penalty: Weight of the redundancy; the source has 0.6.
    """

    hops: int = 2
    questions: int = 8
    documents: int = 12
    mentions: int = 4
    limit: int = 8
    gain: float = 0.0
    penalty: float = 0.0

    @cached_property
    def _mentioned(self) -> Integers:
        """The documents of each one's mentions, ``[document, place]``."""
        rng, others = stream("lab-mentions", self.documents), np.arange(self.documents)
        return np.array([rng.permutation(np.delete(others, k))[: self.mentions] for k in others], dtype=np.int64)

    @cached_property
    def chains(self) -> Integers:
        """The documents that each question leads over, all different, ``[question, hop]``."""
        found = []
        for question in range(self.questions):
            rng = stream("lab-chain", question, self.hops)
            chain = [int(rng.integers(self.documents))]
            while len(chain) < self.hops:
                new = [k for k in self._mentioned[chain[-1]].tolist() if k not in chain]
                chain = [*chain, int(rng.choice(new))] if new else chain[:1]
            found.append(chain)
        return np.array(found, dtype=np.int64)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The documents."""
        return tuple(
            f"entity{k} is known with " + " ".join(f"entity{each}" for each in mentioned)
            for k, mentioned in enumerate(self._mentioned.tolist())
        )

    @cached_property
    def _closeness(self) -> Numbers:
        """Similarity of each document to each gold passage, ``[question, document, hop]``."""
        gold = [[self.texts[k] for k in chain] for chain in self.chains.tolist()]
        return np.array([[similarity(passages, text) for text in self.texts] for passages in gold])

    @property
    def num_states(self) -> int:
        return self.questions * (self.documents + 1) << self.documents

    @property
    def num_actions(self) -> int:
        return self.mentions + 2

    @property
    def max_turns(self) -> int:
        return self.limit

    @property
    def num_observations(self) -> int:
        return self.questions * (self.documents + 1)

    def observe(self, state: Integers) -> Integers:
        return state >> self.documents

    def start(self, seed: int) -> int:
        question = int(stream("lab-start", seed).integers(self.questions))
        return (question * (self.documents + 1) + self.documents) << self.documents

    def _seen(self, state: Integers) -> NDArray[np.bool_]:
        """Return whether each document has been found, ``[episode, document]``."""
        return np.asarray(state[:, None] >> np.arange(self.documents) & 1, dtype=np.bool_)

    def step(self, state: Integers, action: Integers, draw: Numbers) -> Step:
        question, last = np.divmod(self.observe(state), self.documents + 1)
        opened, answers = last < self.documents, action == self.mentions + 1
        follows = (action >= 0) & (action < self.mentions)
        place = np.minimum(last, self.documents - 1)
        following = self._mentioned[place, np.where(follows, action, 0)]
        searched = np.where(follows, following, self.chains[question, 0])
        searches = (action == self.mentions) | (follows & opened)
        solved = answers & opened & (last == self.chains[question, -1])
        seen = self._seen(state)
        gain, redundancy = self.step_scores(question, seen, searched)
        reward = solved + searches * (self.gain * gain - self.penalty * redundancy)
        found = state & ((1 << self.documents) - 1) | (1 << searched)
        moved = (question * (self.documents + 1) + searched) << self.documents | found
        return Step(np.where(searches, moved, state), reward, answers, solved, searches | (answers & opened))

    def step_scores(
        self, question: Integers, seen: NDArray[np.bool_], searched: Integers
    ) -> tuple[Numbers, NDArray[np.bool_]]:
        """Return gain and redundancy of searches that each find one document.

        Args:
            question: The questions.
            seen: Documents that were found before, ``[episode, document]``.
            searched: The document that is found.
        """
        best = (self._closeness[question] * seen[:, :, None]).max(1)
        new = self._closeness[question, searched]
        return np.maximum(new - best, 0.0).mean(1), seen[np.arange(len(searched)), searched]
