"""Another method for each environment of a mixture, in one run with one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, Credit, Divergence, LossInputs, LossOutput, Need, Term
from turngym.trainers.core.columns import Texts, TokenColumn
from turngym.trainers.core.selection import select_episodes
from turngym.trainers.core.turn_table import TurnTable

_OWN = "own"
_ALONE = {
    "learner": "has a learner of its own",
    "modules": "trains networks of its own",
    "collect": "decides which episodes are played",
    "transform_gradients": "changes the gradients of all tokens",
    "trains_policy": "leaves the policy alone in some iterations",
}
"""Parts of an algorithm that concern a whole run."""


class Part(NamedTuple):
    """The method of one environment.

    Args:
        env: Id of the environment.
        label: Its short name, in metrics.
        name: Name of the method, in messages.
        method: The method.
    """

    env: str
    label: str
    name: str
    method: Algorithm[Any]


class PerEnvironment(Algorithm[Sequence[Part]]):
    """Trains the episodes of each environment with its own method.

    Each method sees a table of its own episodes, and its loss the tokens of these. Losses are averaged as their methods
    do, over the whole batch: with ``token``, every token of the batch has the same weight, whichever method trains it.

    Args:
        config: The methods.

    Raises:
        ConfigError: A method needs the whole run, or two disagree about the teacher or the reference policy.
    """

    def __init__(self, config: Sequence[Part]) -> None:
        super().__init__(config)
        for part in config:
            _require_sharing(part)
        self.parts = tuple(config)
        self._divergence: Divergence | None = self._agreed("divergence", "divergence from the teacher")
        self._reference_every: int | None = self._agreed("reference_every", "refresh of the reference policy")

    def _agreed(self, name: str, what: str) -> Any:
        """Return what the methods that use something say of it; None if none does."""
        used = {part: value for part in self.parts if (value := getattr(part.method, name))}
        if len(set(used.values())) > 1:
            named = " and ".join(f"{part.name} of {part.label}" for part in used)
            raise ConfigError(f"{named} differ in their {what}: train separate runs, or give them the same.")
        return next(iter(used.values()), None)

    @property
    def needs(self) -> frozenset[Need]:
        """The needs of all methods."""
        return frozenset[Need]().union(*(part.method.needs for part in self.parts))

    @property
    def normalisations(self) -> frozenset[str]:
        """The normalisations of all methods."""
        return frozenset[str]().union(*(part.method.normalisations for part in self.parts))

    @property
    def compares_same_seat(self) -> bool:
        """True if every method that compares episodes of a group compares those of the same seat."""
        return all(part.method.compares_same_seat for part in self.parts if Need.GROUPS in part.method.needs)

    @property
    def named_roles(self) -> tuple[str, ...]:
        """Roles that the settings of a method name."""
        return tuple(role for part in self.parts for role in part.method.named_roles)

    @property
    def reference_every(self) -> int:
        """Iterations after which the reference policy becomes a copy of the policy; 0 keeps the first one."""
        return self._reference_every or 0

    @property
    def divergence(self) -> Divergence | None:
        """Divergence from the teacher that a loss reads."""
        return self._divergence

    # Credit and loss.

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit to each environment's episodes with its method."""
        found: list[tuple[Part, Tensor, Credit]] = []
        for part in self.parts:
            chosen = _episodes(table, part.env)
            tokens = chosen[table.episode][table.token_turn]
            if tokens.any():
                own = _without_unneeded(select_episodes(table, chosen), part.method.needs)
                found.append((part, tokens, part.method.credit(own)))
        columns: dict[str, TokenColumn] = {}
        for part, tokens, credit in found:
            columns[f"{part.label}/{_OWN}"] = tokens.float()
            columns |= {f"{part.label}/{name}": _spread(each, tokens) for name, each in credit.columns.items()}
        return Credit(
            _merged(len(table.token_turn), [(tokens, credit.advantages) for _, tokens, credit in found], 0.0),
            _merged(len(table.token_turn), [(tokens, credit.returns) for _, tokens, credit in found], float("nan")),
            {f"{part.label}/{name}": value for part, _, credit in found for name, value in credit.metrics.items()},
            columns,
            {part.label: credit for part, _, credit in found},
            _merged(len(table.token_turn), [(tokens, credit.masked) for _, tokens, credit in found], False),
        )

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the terms of each method over its tokens."""
        terms: dict[str, Term] = {}
        metrics: dict[str, Term] = {}
        for part in self.parts:
            own = inputs.columns.get(f"{part.label}/{_OWN}")
            if isinstance(own, Tensor):  # the batch has episodes of the environment
                mine = inputs.action_mask & (own > 0)
                output = part.method.loss(_of_part(inputs, mine, part))
                terms |= {f"{part.label}/{name}": _within(term, mine) for name, term in output.terms.items()}
                metrics |= {f"{part.label}/{name}": _within(term, mine) for name, term in output.metrics.items()}
        return LossOutput(terms, metrics)

    # State.

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Called at the start of each iteration."""
        for part in self.parts:
            part.method.begin_iteration(iteration, num_iterations)

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Give each method the metrics of a finished iteration, under the names that they have in a run on its own."""
        for part in self.parts:
            others = [f"/{other.label}/" for other in self.parts if other is not part]
            part.method.observe(
                {
                    name.replace(f"/{part.label}/", "/", 1): value
                    for name, value in metrics.items()
                    if not any(other in name for other in others)
                }
            )

    def update_state(self, trajectories: Sequence[Trajectory], credit: Credit) -> None:
        """Update the state of each method with its own episodes and their credit."""
        for part in self.parts:
            if part.label in credit.state:
                own = [trajectory for trajectory in trajectories if trajectory.env_id == part.env]
                part.method.update_state(own, credit.state[part.label])

    def state(self) -> dict[str, Any]:
        """Return the state of each method."""
        return {part.label: part.method.state() for part in self.parts}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore what ``state`` returned."""
        for part in self.parts:
            part.method.load_state(state[part.label])


def _require_sharing(part: Part) -> None:
    """Raise if a method cannot train a part of a run."""
    method: Algorithm[Any] = part.method
    chain = [method]
    while isinstance(method, Modifier):
        method = method.base
        chain.append(method)
    for name, what in _ALONE.items():
        inherited = [getattr(Algorithm, name), getattr(Modifier, name)]
        if any(getattr(type(each), name) not in inherited for each in chain):
            raise ConfigError(
                f"{part.name} {what}, so it cannot train {part.label} alone: train separate runs, or give all "
                "environments the same method."
            )
    if part.method.needs & {Need.OTHER_PROMPTS, Need.CURRENT_LOGPROBS}:
        raise ConfigError(
            f"{part.name} reads further passes of the policy, which are over the whole batch of a mixture: give all "
            "environments the same method."
        )
    if Need.OBSERVATIONS in part.method.needs:
        raise ConfigError(
            f"{part.name} learns to predict observations, which belong to no method of a mixture: give all "
            "environments the same method."
        )


def _episodes(table: TurnTable, env: str) -> Tensor:
    """Return which episodes of a table are of an environment."""
    own = torch.tensor([name.startswith(f"{env}/") for name in table.role_names], dtype=torch.bool)
    return own[table.role[table.turn == 0]]


def _without_unneeded(table: TurnTable, needs: frozenset[Need]) -> TurnTable:
    """Return a table without the columns that only another method needs."""
    if Need.VALUES not in needs:
        table = replace(table, turn_value=None, token_value=None, final_value=None)
    if Need.REFERENCE_LOGPROBS not in needs:
        table = replace(table, token_reference_logprob=None)
    if Need.TEACHER_LOGPROBS not in needs:
        table = replace(table, token_teacher_logprob=None)
    return table


def _of_part(inputs: LossInputs, mine: Tensor, part: Part) -> LossInputs:
    """Return a micro-batch in which only the tokens of one method were sampled."""
    columns = {
        name.removeprefix(f"{part.label}/"): column
        for name, column in inputs.columns.items()
        if name.startswith(f"{part.label}/")
    }
    found = replace(
        inputs,
        action_mask=mine,
        turn_ids=torch.where(mine, inputs.turn_ids, -1),
        sampled=None,
        advantages=torch.where(mine, inputs.advantages, 0.0),
        weights={name: torch.where(mine, each, 0.0) for name, each in inputs.weights.items()},
        columns=columns,
    )
    return found if Need.VALUES in part.method.needs else replace(found, values=None, old_values=None, returns=None)


def _within(term: Term, mine: Tensor) -> Term:
    return term._replace(values=torch.where(mine, term.values, 0.0))


def _merged(length: int, parts: Sequence[tuple[Tensor, Tensor | None]], fill: float) -> Any:
    """Return one column over all tokens from those of the methods; None if no method has one."""
    found: Tensor | None = None
    for tokens, column in parts:
        if column is not None:
            found = torch.full((length,), fill, dtype=column.dtype) if found is None else found
            found[tokens] = column
    return found


def _spread(column: TokenColumn, tokens: Tensor) -> TokenColumn:
    """Return a column over a method's tokens as one over all: 0, or no text, elsewhere."""
    if isinstance(column, Texts):
        index = torch.full((len(tokens),), -1, dtype=torch.long)
        index[tokens] = column.index
        return Texts(column.values, index)
    found = torch.zeros((len(tokens), *column.shape[1:]), dtype=column.dtype)
    found[tokens] = column
    return found
