"""The agent around a language model: prompt, generation, parsing, memory, and the log of sampled tokens."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from turngym.agents.chat import Ask, ChatModel, Message, Reply
from turngym.agents.core import Agent, Decision, Request, build_each
from turngym.agents.models.generate import Completion, Generate
from turngym.agents.models.loading import Vocabulary
from turngym.agents.prompt_text import remembered_text, shown_text
from turngym.agents.prompting.prompts import Memory, PastTurn, PromptBuilder, PromptConfig
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.agents.trajectory import Turn
from turngym.agents.usage import Usage
from turngym.envs.parsing.thinking import Thinking
from turngym.envs.vector import TextVectorEnv
from turngym.errors import PromptTooLong
from turngym.wrappers.actions.action_format import AUTO, action_format


class ModelAgent(Agent, ChatModel):
    """Plays with a language model.

    Args:
        model: The model, for its tokenizer and end tokens; the network itself is not used.
        generate: The backend's core call.
        prompt: Prompt settings.
        sampling: Temperature, top-p, length limit.
        format: Name of the action format.
        seed: Seed of the run; with iteration, episode and turn it fixes what is sampled.
        iteration: Number of the training iteration, part of the sampling key.
        context: Longest sequence, prompt and completion, that the model supports; 0 if unknown.
        most_sequences: Takes a number of tokens, returns how many sequences of it the backend keeps from turn to turn;
            None where none are kept.
    """

    def __init__(
        self,
        model: Vocabulary,
        generate: Generate,
        prompt: PromptConfig | None = None,
        sampling: Sampling | None = None,
        format: str = AUTO,
        seed: int = 0,
        iteration: int = 0,
        context: int = 0,
        most_sequences: Callable[[int], int] | None = None,
    ) -> None:
        self.model = model
        self.generate = generate
        self.sampling = sampling or Sampling()
        self.format = format
        self.prompt = prompt or PromptConfig()
        self.builder = PromptBuilder(model.tokenizer, self.prompt, model.stop_ids)
        self.seed = seed
        self.iteration = iteration
        self.context = context
        self.notes: Mapping[int, str] = {}
        """Number of an episode -> text before its first observation; in prompts without the history, before each. One
        that leaves no room for the prompt is left out."""
        self._memories: dict[int, Memory] = {}
        self._most_sequences = most_sequences
        self._turn_limit = self._start = self._growth = 0
        """Of this rollout: turns of an episode at most, tokens after the first turn at most, and of each later one."""

    def attach(self, vector: TextVectorEnv) -> None:
        """Start a rollout, of whose lengths nothing but the limit on turns is known."""
        self._turn_limit = self._start = self._growth = 0
        if self._most_sequences is not None:
            with suppress(Exception):  # environments of others may not have a limit
                self._turn_limit = max(map(int, vector.call("max_turns")))

    def room(self) -> int:
        """Return how many episodes the backend keeps until they end: more would be computed again at every turn.

        Until a second turn says how they grow, they are taken to become as long as any may be.
        """
        if self._most_sequences is None:
            return 0
        longest = self.prompt_limit + self.sampling.max_new_tokens
        if self._turn_limit and self._growth:
            ends = [len(each.ids) - len(each.turns) * self._growth for each in self._memories.values()]
            expected = max([self._start - self._growth, *ends]) + self._turn_limit * self._growth
            longest = min(longest, expected)
        return self._most_sequences(longest)

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Sample one completion for each request and parse the action in it."""
        built = build_each(requests, self._prompted)
        shown = [each for each in built if not isinstance(each, Decision)]
        asked, prompts = [request for request, _ in shown], [prompt for _, prompt in shown]
        completions = iter(self.complete(asked, prompts) if asked else ())
        return [each if isinstance(each, Decision) else self.decision(*each, next(completions)) for each in built]

    def _prompted(self, request: Request) -> tuple[Request, tuple[int, ...]]:
        """Return the request as it is remembered and its prompt, with the note of its episode if there is room.

        Raises:
            PromptTooLong: The prompt does not fit without a note either.
        """
        note, is_conversation = self.notes.get(request.episode), self.prompt.mode == "conversation"
        if note and not (request.turn and is_conversation):
            noted = replace(request, observation=f"{note}\n\n{request.observation}")
            with suppress(PromptTooLong):
                return noted if is_conversation else request, self.next_prompt(noted)
        return request, self.next_prompt(request)

    def decision(self, request: Request, prompt: tuple[int, ...], completion: Completion) -> Decision:
        """Remember what was sampled for a request, and return the action in it.

        Args:
            request: The request.
            prompt: Its prompt.
            completion: Sampled completion.
        """
        text = self.text_of(completion.ids)
        action = self.format_of(request).action_of(text, self.thinking)
        self.remember(request, action, text, prompt, completion.ids)
        return Decision(
            action,
            text,
            prompt,
            completion.ids,
            completion.logprobs,
            entropies=completion.entropies,
            pictures=self.pictures_of(request),
            cut_off=self.is_cut_off(completion.ids),
            restricted=self.sampling.is_restricted,
            policy_version=completion.version,
        )

    @property
    def thinking(self) -> Thinking:
        """Reasoning markers of the model."""
        return self.builder.thinking

    def is_cut_off(self, ids: tuple[int, ...]) -> bool:
        """Return whether a completion has no end token, so that its length limit ended it."""
        return bool(ids) and ids[-1] not in self.model.stop_ids

    def complete(self, requests: Sequence[Request], prompts: Sequence[tuple[int, ...]]) -> Sequence[Completion]:
        """Sample the completion of each request's prompt."""
        return self.generate(prompts, [self.uniforms(request) for request in requests], self.sampling)

    def uniforms(self, request: Request) -> NDArray[np.float64]:
        """Return the random numbers of a request's completion."""
        return turn_uniforms(self.seed, self.iteration, request.episode, request.turn, self.sampling.max_new_tokens)

    @property
    def prompt_limit(self) -> int:
        """Longest prompt, in tokens, that leaves room for a whole completion."""
        return min(self.prompt.max_prompt_tokens, self._room(self.sampling.max_new_tokens))

    def _room(self, new: int) -> int:
        """Return the tokens that the model's context leaves for a prompt with ``new`` ones behind it."""
        return max(self.context - new, 0) if self.context else sys.maxsize

    def next_prompt(self, request: Request) -> tuple[int, ...]:
        """Return the prompt that is answered next.

        Raises:
            PromptTooLong: It is longer than ``max_prompt_tokens``, or no whole completion fits behind it.
        """
        return self._prompt(request, self.sampling.max_new_tokens)

    def final_prompt(self, request: Request) -> tuple[int, ...]:
        """Return the prompt for ``request``, without room for a completion.

        Raises:
            PromptTooLong: It is longer than ``max_prompt_tokens`` or the model's context.
        """
        return self._prompt(request, 0)

    def _prompt(self, request: Request, new: int) -> tuple[int, ...]:
        memory = self._memories.get(request.episode) or Memory()
        return self._built(self.builder, memory, request, self._room(new))

    def _built(self, builder: PromptBuilder, memory: Memory, request: Request, room: int) -> tuple[int, ...]:
        answer = self.format_of(request).sentence
        return builder.prompt(memory, request.observation, request.info, request.instructions, answer, room=room)

    def ask(self, asks: Sequence[Ask]) -> list[Reply]:
        """Return the answer to each call, generated in one batch."""
        began = time.perf_counter()
        prompts = [self._chat_ids(ask.messages) for ask in asks]
        count = self.sampling.max_new_tokens
        uniforms = [turn_uniforms(self.seed, self.iteration, ask.episode, ask.turn, count, ask.key) for ask in asks]
        pictures = [self.chat_pictures(ask.messages) for ask in asks]
        completions = self.chat_completions(prompts, pictures, uniforms) if asks else []
        latency = time.perf_counter() - began
        return [
            Reply(
                self.text_of(found.ids),
                Usage(len(prompt), len(found.ids), calls=1, latency=latency),
                prompt,
                found.ids,
                found.logprobs,
                cut_off=self.is_cut_off(found.ids),
                restricted=self.sampling.is_restricted,
                pictures=shown,
            )
            for prompt, found, shown in zip(prompts, completions, pictures, strict=True)
        ]

    def chat_pictures(self, messages: Sequence[Message]) -> tuple[bytes, ...]:
        """Return the images that the model is shown with a conversation, as PNG files."""
        return ()

    def chat_completions(
        self,
        prompts: Sequence[tuple[int, ...]],
        pictures: Sequence[tuple[bytes, ...]],
        uniforms: Sequence[NDArray[np.float64]],
    ) -> Sequence[Completion]:
        """Sample the answer to each conversation.

        Args:
            prompts: Token ids of the conversations.
            pictures: The images of each.
            uniforms: Random numbers of each completion.
        """
        return self.generate(prompts, uniforms, self.sampling)

    def greedy(self, max_new_tokens: int) -> ModelAgent:
        """Return an agent without memories that shares the loaded model, with greedy decoding."""
        shared = copy.copy(self)
        shared.sampling, shared._memories = Sampling(0.0, max_new_tokens=max_new_tokens), {}
        return shared

    def count(self, messages: Sequence[Message]) -> int:
        """Return how many tokens a conversation has as a prompt."""
        return len(self._chat_ids(messages))

    def _chat_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        return self.builder.chat([(message.role, message.text) for message in messages])

    def remember(
        self, request: Request, action: str, completion: str, prompt: tuple[int, ...], answer: tuple[int, ...]
    ) -> None:
        """Remember an observation and its answer.

        Args:
            request: Answer.
            action: The action in the answer.
            completion: The answer.
            prompt: The prompt's tokens.
            answer: The answer's tokens, its end token included.
        """
        memory = self._memories.setdefault(request.episode, Memory())
        seen = request.observation
        if self.prompt.mode == "conversation":
            seen = shown_text(self.prompt, seen, request.info)
        said = remembered_text(self.prompt, action, completion, self.format_of(request).regions, self.thinking)
        memory.turns.append(PastTurn(seen, said, action, answer))
        more = len(prompt) + len(answer) - len(memory.ids)
        if memory.ids:
            self._growth = max(self._growth, more)
        else:
            self._start = max(self._start, more)
        memory.ids = prompt + answer

    def recall(self, episode: int, turns: Sequence[Turn]) -> None:
        """Load the history of an episode that branches from another."""
        regions = action_format(self.format, finds_action=True).regions  # ``auto``: those of any notation
        past = [
            PastTurn(
                turn.observation,
                remembered_text(self.prompt, turn.action, turn.completion, regions, self.thinking),
                turn.action,
                turn.completion_ids,
            )
            for turn in turns
        ]
        self._memories[episode] = Memory(past, turns[-1].prompt_ids + turns[-1].completion_ids if turns else ())

    def follow(self, request: Request, action: str, completion: str = "") -> Decision:
        """Remember a turn that was decided elsewhere, written in the format of this agent if it is in another one."""
        [prompt] = build_each([request], self.next_prompt)
        if isinstance(prompt, Decision):
            return prompt
        text = self.format_of(request).written(action, completion, self.thinking)
        ids = (*self.builder.answer(text), int(self.model.tokenizer.eos_token_id))
        self.remember(request, action, text, prompt, ids)
        return Decision(action, text, prompt, ids, (0.0,) * len(ids), pictures=self.pictures_of(request))

    def forget(self, episode: int) -> None:
        """Drop the memory of an episode."""
        self._memories.pop(episode, None)

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of a completion without its end token."""
        kept = ids[:-1] if ids and ids[-1] in self.model.stop_ids else ids
        return str(self.model.tokenizer.decode(list(kept), skip_special_tokens=False))
