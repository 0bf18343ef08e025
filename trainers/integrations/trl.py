"""TRL 1.16: environments for ``GRPOTrainer``, as an environment with a tool and as a rollout function.

``environment_factory=tool_environment(...)`` is for models that call tools: TRL generates, parses the tool calls,
calls :meth:`ToolEnvironment.act` and masks what it returns. ``rollout_func=Rollout(...)`` is for any chat model: the
action is a part of the answer's text, and the episode is one append-only sequence of tokens. See trl.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turngym.agents.models.generate import Completion, generate
from turngym.agents.models.loading import LanguageModel
from turngym.agents.prompting.prompts import Memory, PastTurn, PromptBuilder, PromptConfig
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.errors import ConfigError
from turngym.trainers.integrations.episode import Episode, Task, task_rows
from turngym.wrappers.actions.action_format import AUTO

__all__ = ["Rollout", "ToolEnvironment", "return_reward", "rollout_rows", "task_rows", "tool_environment"]


class ToolEnvironment:
    r"""TRL environment of one completion: an episode whose actions are calls of the tool ``act``.

    TRL calls :meth:`reset` with the columns of a row, offers every other public method to the model as a tool, and
    asks :meth:`get_reward` once at the end. A reward function finds these objects in its argument ``environments``.

    >>> env = ToolEnvironment()
    >>> print(env.reset(env_id="turngym/NumberLine-v0", seed=3).splitlines()[-1])
    You are at 4. The target is 5.
    >>> env.act("+"), env.get_reward()
    ('You are at 5. The target is 5.\nThe episode is over.', 1.0)
    """

    _env_id = ""
    _settings: Mapping[str, Any] = {}
    _wrappers: tuple[str, ...] = ()
    _legal_actions = False

    def __init__(self) -> None:
        self._episode = Episode("plain", self._legal_actions)

    def reset(self, **row: Any) -> str:
        """Begin the episode of a row, and return the rules and the first observation for the end of its prompt.

        Raises:
            ConfigError: The row has no seed, or names no environment.
        """
        task = Task.of_row(row, self._env_id, self._settings, self._wrappers)
        system, user = self._episode.begin(task, answer="Give each action with a call of the tool act.")
        return f"{system['content']}\n\n{user['content']}"

    def act(self, action: str) -> str:
        """Take one turn of the episode.

        Args:
            action: The action, in the words that the rules ask for.

        Returns:
            What you see after the action.
        """
        observation = self._episode.step(action)
        return f"{observation}\nThe episode is over." if self._episode.is_over else observation

    def get_reward(self) -> float | None:
        """Return the episode's return so far; None after a fault, which TRL leaves out of the group and the loss."""
        return self._episode.result.total

    @property
    def episode(self) -> Episode:
        """The episode, with how it ended."""
        return self._episode


def tool_environment(
    env_id: str,
    *,
    wrappers: Sequence[str] = (),
    legal_actions: bool = False,
    **settings: Any,
) -> type[ToolEnvironment]:
    """Return what ``environment_factory`` takes, for rows that have only a seed.

    Several of them go into one run as a dict; then each row names its own in the column ``environment``.

    Args:
        env_id: The environment of rows that name none.
        wrappers: Specifications such as ``"turn_limit:max_turns=5"``.
        legal_actions: List the legal actions with each observation.
        **settings: Options of the environment; a row's own come first.

    >>> env = tool_environment("turngym/TowerOfHanoi-v0", discs=2)()
    >>> env.reset(seed=0).splitlines()[-3:]
    ['A: 2 1', 'B:', 'C:']
    """
    content = {
        "_env_id": env_id,
        "_settings": settings,
        "_wrappers": tuple(wrappers),
        "_legal_actions": legal_actions,
    }
    name = env_id.rpartition("/")[2].partition("-v")[0]  # TRL logs the reward under this name
    return type(name, (ToolEnvironment,), content)


def rollout_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows whose prompts carry the task, because a rollout function is given prompts and nothing else.

    Args:
        rows: Result of :func:`task_rows`, or custom rows with the same columns.

    >>> rows = rollout_rows(task_rows("turngym/TowerOfHanoi-v0", [7]))
    >>> rows[0]["prompt"][0]["task"]["seed"]
    7
    """
    found = []
    for row in rows:
        message = {**row["prompt"][-1], "task": Task.of_row(row).row()}
        found.append({**row, "prompt": [*row["prompt"][:-1], message]})
    return found


Generate = Callable[[Any, Sequence[tuple[int, ...]], Sampling, int], "list[Completion]"]
"""The trainer, prompts as token ids, the settings and the number of the turn, to sampled tokens."""


class Rollout:
    """A ``rollout_func``: plays the episodes of a batch in parallel, one conversation of tokens for each.

    The ids that are trained on are the sampled ones; ``env_mask`` is 0 on the environment's tokens. An episode is
    truncated if another turn might not fit into the trainer's ``max_completion_length``. Beside the ids it returns
    ``episode_return`` (None after a fault) and the other numbers of
    :class:`~turngym.trainers.integrations.episode.Result` as columns that reward functions are given.

    Args:
        format: Name of the action format: ``tag``, ``boxed``, ``json`` or ``plain``.
        max_new_tokens: Longest answer of one turn.
        legal_actions: List the legal actions with each observation.
        generate: Sampler; None for the trainer's model, in this process.
        seed: Seed of the sampling.
    """

    def __init__(
        self,
        format: str = AUTO,
        max_new_tokens: int = 256,
        legal_actions: bool = False,
        generate: Generate | None = None,
        seed: int = 0,
    ) -> None:
        self.format = format
        self.max_new_tokens = max_new_tokens
        self.legal_actions = legal_actions
        self.seed = seed
        self._generate = generate or self._generate_here
        self._episodes: list[Episode] = []  # kept with their environments, one for each place in the batch
        self._calls = 0

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """Play one episode for each prompt; TRL has repeated them ``num_generations`` times before.

        Raises:
            ConfigError: A prompt carries no task, or the trainer's settings do not fit.
        """
        self._check(trainer)
        model = LanguageModel(trainer.accelerator.unwrap_model(trainer.model), trainer.processing_class, "")
        config = PromptConfig(mode="conversation", max_prompt_tokens=2**31)  # the room below is the limit
        builder = PromptBuilder(model.tokenizer, config, model.stop_ids)
        self._episodes += [Episode(self.format, self.legal_actions) for _ in prompts[len(self._episodes) :]]
        played = [_Conversation(*pair) for pair in zip(self._episodes, map(_task_of, prompts), strict=False)]
        sampling = Sampling(trainer.temperature, trainer.top_p, self.max_new_tokens)
        room, turn = trainer.max_completion_length - self.max_new_tokens, 0
        while running := [each for each in played if each.ask(builder, room)]:
            answers = self._generate(trainer, [each.ids for each in running], sampling, turn)
            for each, answer in zip(running, answers, strict=True):
                each.take(answer, model)
            turn += 1
        self._calls += 1
        return _columns(played, int(model.tokenizer.eos_token_id))

    def _check(self, trainer: Any) -> None:
        """Raise for settings of the trainer that sampling does not support."""
        if self.max_new_tokens > trainer.max_completion_length:
            raise ConfigError(
                f"max_new_tokens={self.max_new_tokens} of one turn exceeds max_completion_length="
                f"{trainer.max_completion_length} of the trainer, which is for a whole episode: raise that."
            )
        unknown = {"top_k": trainer.top_k, "min_p": trainer.min_p, "repetition_penalty": trainer.repetition_penalty}
        used = {name: value for name, value in unknown.items() if value not in (None, 0, -1, 1.0)}
        if used and self._generate == self._generate_here:
            raise ConfigError(f"Rollout samples with temperature and top_p only, got {used}: pass your own generate.")

    def _generate_here(
        self, trainer: Any, prompts: Sequence[tuple[int, ...]], sampling: Sampling, turn: int
    ) -> list[Completion]:
        """Sample with the trainer's model in this process."""
        model = LanguageModel(trainer.accelerator.unwrap_model(trainer.model), trainer.processing_class, "")
        first = trainer.accelerator.process_index * len(self._episodes)
        keys = range(first, first + len(prompts))
        count = sampling.max_new_tokens
        uniforms = [turn_uniforms(self.seed, self._calls, key, turn, count) for key in keys]
        was_training = model.network.training
        model.network.eval()
        try:
            return generate(model.network, prompts, uniforms, sampling, model.stop_ids)
        finally:
            model.network.train(was_training)


class _Conversation:
    """One running episode: all of its tokens, and which of them were sampled."""

    def __init__(self, episode: Episode, task: Task) -> None:
        self.episode = episode
        system, user = episode.begin(task)
        self._system, self._seen = system["content"], user["content"]
        self.ids: tuple[int, ...] = ()
        self._past: list[PastTurn] = []
        self.prompt_length = 0
        self.mask: list[int] = []
        self.logprobs: list[float] = []

    def ask(self, builder: PromptBuilder, room: int) -> bool:
        """Append what was seen, unless the episode is over or there is no room for another turn."""
        if self.episode.is_over:
            return False
        ids = builder.prompt(Memory(self._past, self.ids), self._seen, {}, self._system)
        if not self.ids:
            self.prompt_length = len(ids)
        new = len(ids) - self.prompt_length - len(self.mask)
        if len(self.mask) + new > room:
            self.episode.cut()
            return False
        self.ids = ids
        self._add([0] * new, [0.0] * new)
        return True

    def take(self, answer: Completion, model: LanguageModel) -> None:
        """Append what was sampled, and take the turn."""
        kept = answer.ids[:-1] if answer.ids[-1] in model.stop_ids else answer.ids
        text = str(model.tokenizer.decode(list(kept), skip_special_tokens=False))
        self._past.append(PastTurn(self._seen, text, ids=answer.ids))
        self._seen = self.episode.step(text, self.ids, answer.ids, answer.logprobs)
        self.ids += answer.ids
        self._add([1] * len(answer.ids), answer.logprobs)

    def _add(self, mask: Sequence[int], logprobs: Sequence[float]) -> None:
        self.mask += mask
        self.logprobs += logprobs


def _columns(played: Sequence[_Conversation], filler: int) -> dict[str, list[Any]]:
    """Return what TRL wants; a faulted episode has at least one token, all of them masked."""
    found: dict[str, list[Any]] = {name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "env_mask")}
    for each in played:
        result = each.episode.result
        found["prompt_ids"].append(list(each.ids[: each.prompt_length]) or [filler])
        found["completion_ids"].append(list(each.ids[each.prompt_length :]) or [filler])
        found["logprobs"].append(each.logprobs or [0.0])
        found["env_mask"].append([0] * len(each.mask) if result.fault else each.mask)
        found["env_mask"][-1] = found["env_mask"][-1] or [0]
        for name, value in {**result.numbers(), "episode_return": result.total}.items():
            found.setdefault(name, []).append(value)
    return found


def _task_of(prompt: Any) -> Task:
    """Return the task that a prompt of :func:`rollout_rows` carries."""
    task = prompt[-1].get("task") if isinstance(prompt, list) and prompt else None
    if task is None:
        raise ConfigError("a prompt carries no task: make the data set with rollout_rows(task_rows(...)).")
    return Task.of_row(task)


def return_reward(episode_return: Sequence[float | None], **columns: Any) -> list[float | None]:
    """A reward function for :class:`Rollout`: the return of each episode, None after a fault.

    >>> return_reward([1.0, None], prompts=[], completions=[])
    [1.0, None]
    """
    return list(episode_return)
