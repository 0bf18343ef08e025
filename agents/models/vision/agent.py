"""The agent around a model that sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from turngym.agents.chat import Message
from turngym.agents.core import Request
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.generate import Completion
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.vision.generation import generate_with_pictures
from turngym.agents.models.vision.pictures import TEXT_ONLY, PictureInputs, PictureTokenizer
from turngym.agents.prompt_text import PromptConfig
from turngym.agents.prompting.prompts import Memory, PromptBuilder
from turngym.agents.sampling import Sampling
from turngym.agents.trajectory import Turn
from turngym.envs.png import png
from turngym.errors import PromptTooLong
from turngym.wrappers.actions.action_format import AUTO


class VisionAgent(ModelAgent):
    """Plays with a model that sees the images of observations.

    Every prompt shows the image of the current turn. Those of earlier turns stay in it in ``conversation`` mode; the
    earlier turns of ``window`` prompts are text. Observations without an image are played as by
    :class:``~turngym.agents.models.agent.ModelAgent``.

    Args:
        model: The model, with its network.
        takes: Image handling.
        prompt: Prompt settings.
        sampling: Temperature, top-p, length limit.
        format: Name of the action format.
        seed: Seed of the run.
        iteration: Number of the training iteration.
    """

    def __init__(
        self,
        model: LanguageModel,
        takes: PictureInputs,
        prompt: PromptConfig | None = None,
        sampling: Sampling | None = None,
        format: str = AUTO,
        seed: int = 0,
        iteration: int = 0,
    ) -> None:
        super().__init__(
            model, model.generate or self._without_pictures, prompt, sampling, format, seed, iteration, model.context
        )
        self.network = model.network
        self.takes = takes
        self._with_picture = PromptBuilder(
            PictureTokenizer(model.tokenizer),  # type: ignore[arg-type]
            self.prompt,
            model.stop_ids,
        )
        self._seen: dict[int, tuple[bytes, ...]] = {}
        self._shown: dict[int, tuple[bytes, ...]] = {}

    def complete(self, requests: Sequence[Request], prompts: Sequence[tuple[int, ...]]) -> Sequence[Completion]:
        """Sample the completion of each request's prompt with its pictures."""
        uniforms = [self.uniforms(request) for request in requests]
        return self._generate(prompts, [self.pictures_of(request) for request in requests], uniforms, self.sampling)

    def pictures_of(self, request: Request) -> tuple[bytes, ...]:
        """Return the images in the prompt of a request, as PNG files."""
        return self._shown.get(request.episode, ())

    def remember(
        self, request: Request, action: str, completion: str, prompt: tuple[int, ...], answer: tuple[int, ...]
    ) -> None:
        """Remember an observation and its answer; in ``conversation`` mode its image stays in the prompt."""
        super().remember(
            self._without_text(request), action, completion, prompt, self.takes.without_placeholders(answer)
        )
        self._seen[request.episode] = self.pictures_of(request)

    def recall(self, episode: int, turns: Sequence[Turn]) -> None:
        """Load the history of an episode that branches from another."""
        fed = [replace(turn, completion_ids=self.takes.without_placeholders(turn.completion_ids)) for turn in turns]
        super().recall(episode, fed)
        self._seen[episode] = turns[-1].pictures if turns else ()

    def forget(self, episode: int) -> None:
        """Drop the memory of an episode, its images included."""
        super().forget(episode)
        self._seen.pop(episode, None)
        self._shown.pop(episode, None)

    def _prompt(self, request: Request, new: int) -> tuple[int, ...]:
        memory = self._memories.get(request.episode) or Memory()
        image = request.image
        if image is None:
            plain = super()._prompt(request, new)
            goes_on = bool(memory.ids) and plain[: len(memory.ids)] == memory.ids
            self._shown[request.episode] = self._seen.get(request.episode, ()) if goes_on else ()
            return plain
        request = self._without_text(request)
        room = self._room(new)
        ids = self._built(self._with_picture, memory, request, room)
        before = memory.ids if memory.ids and ids[: len(memory.ids)] == memory.ids else ()
        seen = (*self._seen.get(request.episode, ()), png(image))
        written = sum(token == self.takes.placeholder for token in ids[len(before) :])
        added = seen[len(seen) - written :]
        whole = before + self.takes.expanded(ids[len(before) :], added)
        limit = min(self.prompt.max_prompt_tokens, room)
        if len(whole) > limit:
            raise PromptTooLong(
                f"a prompt has {len(whole)} tokens with its {len(seen)} images, more than {limit}: raise "
                "max_prompt_tokens, or use prompt mode 'window', which shows one image.",
                len(whole),
                limit,
            )
        self._shown[request.episode] = (*seen[:-1], *added) if before else added
        return whole

    def _chat_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        shown = self.chat_pictures(messages)
        if not shown:
            return super()._chat_ids(messages)
        said = [
            (TEXT_ONLY if each.role == "user" and each.image is None else each.role, each.text) for each in messages
        ]
        return self.takes.expanded(self._with_picture.chat(said), shown)

    def chat_pictures(self, messages: Sequence[Message]) -> tuple[bytes, ...]:
        """Return the images of the messages, as PNG files."""
        return tuple(png(message.image) for message in messages if message.image is not None)

    def chat_completions(
        self,
        prompts: Sequence[tuple[int, ...]],
        pictures: Sequence[tuple[bytes, ...]],
        uniforms: Sequence[NDArray[np.float64]],
    ) -> Sequence[Completion]:
        """Sample the answer to each conversation with its images."""
        return self._generate(prompts, pictures, uniforms, self.sampling)

    def _without_text(self, request: Request) -> Request:
        return replace(request, observation="") if self.prompt.pictures_only and request.image is not None else request

    def _generate(
        self,
        prompts: Sequence[Sequence[int]],
        pictures: Sequence[Sequence[bytes]],
        uniforms: Sequence[NDArray[np.float64]],
        sampling: Sampling,
    ) -> list[Completion]:
        return generate_with_pictures(
            self.network, self.takes, prompts, pictures, uniforms, sampling, self.model.stop_ids
        )

    def _without_pictures(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        return self._generate(prompts, [()] * len(prompts), uniforms, sampling)
