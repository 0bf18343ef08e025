"""The vector: environments stepped together, in subsets, or as they become ready.

A step, from call to call (in the synchronous backend; others run ``Slot`` in threads, processes or on other machines)::

    TextVectorEnv.step(actions, indices)
        Packing.split             actions of the batch -> one per slot
        Book.step_op              ("step", action), or ("reset", seed) where the last episode ended
        Backend.stream            runs the operations and yields the results in order
            Slot.step             one environment; a fault, an exception for example, becomes a result
                env.step
                finite_reward, flag, valid_table       nothing that breaks the batch passes
        Book.settle               status, seed and last observation of the slot; counts faults
        _with_next                SAME_STEP only: resets ended slots by the same path
        Packing.batch             results -> observations, rewards, terminations, truncations
            Infos                 one dict per slot; columns are built when they are first read
    send and recv run the same calls, with Backend.submit and Backend.collect in the place of stream.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Self

from gymnasium.error import AlreadyPendingCallError, NoAsyncCallError
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from turngym.envs.vector.backends.base import REFUSED, Backend, SlotFailure
from turngym.envs.vector.book import ENDED, Book
from turngym.envs.vector.info import Infos
from turngym.envs.vector.options import read_mask, read_seeds, require_count, slot_options
from turngym.envs.vector.packing import Array, Batch, Packing
from turngym.envs.vector.slots.fitting import copied
from turngym.envs.vector.slots.slot import Result
from turngym.errors import ConfigError


class TextVectorEnv(VectorEnv[Any, Any, Any]):
    """A Gymnasium vector for environments whose actions are text.

    Unlike Gymnasium's own vectors, it can step any subset of slots and return the first that are ready; a fault affects
    only its slot, and info columns are built lazily. Create one with :func:`turngym.make_vec`.

    Args:
        backend: Runs the slots; the vector closes it.
        autoreset_mode: When an ended episode is followed by the next, with Gymnasium's meaning.
        name: Shown by ``repr``.

    Raises:
        ConfigError: The environments' spaces differ.
    """

    def __init__(self, backend: Backend, autoreset_mode: AutoresetMode, name: str) -> None:
        self.num_envs = len(backend.makers)
        self.autoreset_mode = autoreset_mode
        self._backend = backend
        self._name = name
        self._all = range(self.num_envs)
        self._pending: dict[int, Any] = {}
        self._ended: dict[int, Result] = {}
        self._ready: dict[int, Result] = {}
        try:
            self._adopt(backend.run(self._all, [("open",)] * self.num_envs))
        except BaseException:
            backend.close()
            raise

    def _adopt(self, facts: list[dict[str, Any]]) -> None:
        """Set the spaces and metadata, which must be the same for every slot."""
        first = facts[0]
        for slot, other in enumerate(facts):
            for kind in ("observation_space", "action_space"):
                if other[kind] != first[kind]:
                    raise ConfigError(
                        f"the slots of one vector need equal spaces: the {kind} of slot 0 is {first[kind]}, that of "
                        f'slot {slot} is {other[kind]}. Pass observation="text" to see only the text of each.'
                    )
        self.metadata = {**first["metadata"], "autoreset_mode": self.autoreset_mode}
        self.render_mode = first["render_mode"]
        self.single_observation_space = first["observation_space"]
        self.single_action_space = first["action_space"]
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._packing = Packing(self.single_observation_space, self.single_action_space)
        self._book = Book(self.num_envs, self.autoreset_mode, self._packing.empty())

    # Gymnasium's methods.

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Start new episodes.

        Args:
            seed: One per slot, which may repeat; an int ``s`` means ``s, s + 1, ...``; None continues with the current
                generators.
            options: ``"reset_mask"`` (bool array) resets only some slots; ``"slot_options"`` is a list of one dict or
                None per slot; everything else goes to every slot.

        Returns:
            The observations of all slots, the last ones where nothing was reset, and the infos of the slots that were.
        """
        seeds = read_seeds(seed, self.num_envs)
        mask = read_mask(options, self.num_envs)
        given = slot_options(options, self.num_envs)
        chosen = [slot for slot in self._all if mask is None or mask[slot]]
        self._require_idle(chosen)
        ops = [self._book.reset_op(slot, seeds[slot], given[slot]) for slot in chosen]
        rows: list[dict[str, Any]] = [{} for _ in self._all]
        try:
            for slot, op, result in zip(chosen, ops, self._backend.stream(chosen, ops), strict=True):
                rows[slot] = self._book.settle(slot, op, result)[4]
        except (KeyboardInterrupt, SystemExit):
            self._book.drop(chosen)
            raise
        self._backend.check()
        return self._packing.join(self._book.last), Infos(rows)

    def step(self, actions: Any, indices: Sequence[int] | None = None) -> Batch:
        """Take one turn in every slot, or in those of ``indices``.

        Args:
            actions: One per stepped slot, in the same order.
            indices: Slots to step; None for all.

        Returns:
            Observations, rewards (float64), terminations, truncations and infos, one entry per stepped slot in the
            order of ``indices``. A slot with a fault has reward 0, is truncated, and gives the reason in
            ``info["fault"]``.

        Raises:
            EpisodeOver: A slot has no running episode, and the autoreset mode does not start one.
        """
        chosen = self._chosen(indices)
        ops = self._ops(chosen, actions)
        try:
            answers = self._backend.stream(chosen, ops)
            results: Iterable[Result] = map(self._book.settle, chosen, ops, answers)
            if self.autoreset_mode is AutoresetMode.SAME_STEP:
                results = self._with_next(chosen, list(results))
            batch = self._packing.batch(results)
        except (KeyboardInterrupt, SystemExit):
            self._book.drop(chosen)  # the state of these episodes is unknown
            raise
        self._backend.check()
        return batch

    def _with_next(self, chosen: Sequence[int], results: list[Result]) -> list[Result]:
        """Return the results, those of ended episodes joined with the start of the next ones."""
        status = self._book.status
        ended = [(position, slot) for position, slot in enumerate(chosen) if status[slot] == ENDED]
        if not ended:
            return results
        for position, _ in ended:
            results[position] = _kept(results[position])
        ops = [self._book.reset_op(slot) for _, slot in ended]
        answers = self._backend.stream([slot for _, slot in ended], ops)
        for (position, slot), op, answer in zip(ended, ops, answers, strict=True):
            results[position] = _joined(results[position], self._book.settle(slot, op, answer))
        return results

    def send(self, actions: Any, indices: Sequence[int] | None = None) -> None:
        """Start one turn in every slot, or in those of ``indices``; :meth:`recv` fetches the results."""
        chosen = self._chosen(indices)
        ops = self._ops(chosen, actions)
        self._backend.submit(chosen, ops)
        self._pending.update(zip(chosen, ops, strict=True))

    def recv(
        self, min_ready: int = 1, timeout_seconds: float | None = None
    ) -> tuple[list[int], Any, Array, Array, Array, Infos]:
        """Fetch the turns that are ready, in order of completion.

        Args:
            min_ready: Wait for at least that many, or for all in flight if they are fewer; 0 does not wait.
            timeout_seconds: Return the available turns, possibly none, after that time; None waits.

        Returns:
            The slots, then what :meth:`step` returns for them.

        Raises:
            NoAsyncCallError: Nothing was sent.
        """
        if not self._pending and not self._ready:
            raise NoAsyncCallError("recv() without an action under way: call send() first.", "recv")
        require_count("min_ready", min_ready)
        needed = min(min_ready, len(self._pending) + len(self._ready))
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                answers = self._backend.collect(needed - len(self._ready), left)
            except SlotFailure as failure:
                self._pending.pop(failure.slot, None)
                self._ended.pop(failure.slot, None)
                raise failure.error from None
            for slot, answer in answers:
                self._receive(slot, answer)
            if len(self._ready) >= needed or left == 0.0:
                ready, self._ready = self._ready, {}  # deleted only now, so that no result is lost on an error
                return list(ready), *self._packing.batch(ready.values())

    def _receive(self, slot: int, answer: Any) -> None:
        """Settle one answer; in SAME_STEP mode an ended episode is ready only when the next has started."""
        result = self._book.settle(slot, self._pending.pop(slot), answer)
        if slot in self._ended:
            result = _joined(self._ended.pop(slot), result)
        elif self.autoreset_mode is AutoresetMode.SAME_STEP and self._book.status[slot] == ENDED:
            self._ended[slot] = _kept(result)
            self._pending[slot] = self._book.reset_op(slot)
            self._backend.submit([slot], [self._pending[slot]])
            return
        self._ready[slot] = result

    # Other methods.

    def call(self, name: str, *args: Any, indices: Sequence[int] | None = None, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute; exceptions reach the caller.

        >>> import turngym
        >>> vector = turngym.make_vec("CartPole-v1", 2)
        >>> vector.call("spec")[0].id
        'CartPole-v1'
        """
        if name in ("reset", "step", "close", "restore"):
            raise ConfigError(f"call({name!r}) would hide an episode from the vector: use its own {name}().")
        return tuple(self._on_each("call", name, args, kwargs, indices=indices))

    def get_attr(self, name: str, indices: Sequence[int] | None = None) -> tuple[Any, ...]:
        """Return an attribute of each environment."""
        return self.call(name, indices=indices)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute: a list or tuple holds one value per slot, anything else goes to every slot."""
        each = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise ConfigError(f"set_attr({name!r}) needs {self.num_envs} values, one per slot, got {len(each)}.")
        self._require_idle(self._all)
        self._backend.run(self._all, [("set", name, value) for value in each])

    def render(self) -> tuple[Any, ...]:
        """Return the image of each slot."""
        return self.call("render")

    def snapshot(self, indices: Sequence[int] | None = None) -> list[bytes]:
        """Return the exact state of each environment, as its own ``snapshot`` does."""
        return list(self._on_each("snapshot", indices=indices))

    def restore(self, snapshots: Sequence[bytes], indices: Sequence[int] | None = None) -> tuple[Any, Infos]:
        """Restore one snapshot per slot, possibly from another vector or backend.

        Returns:
            The observations and infos of these slots, as they were.
        """
        chosen = self._chosen(indices)
        if len(snapshots) != len(chosen):
            raise ConfigError(f"restore() needs one snapshot per slot: got {len(snapshots)} for {len(chosen)} slots.")
        ops = [("restore", snapshot) for snapshot in snapshots]
        answers = list(self._backend.stream(chosen, ops))
        results = [
            self._book.settle(slot, op, answer)
            for slot, op, answer in zip(chosen, ops, answers, strict=True)
            if answer is not REFUSED  # that slot's episode is unchanged
        ]
        self._backend.check()
        return self._packing.join([result[0] for result in results]), Infos([result[4] for result in results])

    def stats(self) -> dict[str, Any]:
        """Return statistics since the vector was created.

        Returns:
            ``steps``, ``resets``, ``faults`` (a count per kind), ``workers_replaced``, ``abandoned`` (hanging
            environments that could not be ended), ``waiting_seconds`` (time for which the caller was blocked),
            ``busy_seconds`` (working time summed over environments), and ``step_seconds`` and ``reset_seconds``: dicts
            of ``count``, ``p50``, ``p90``, ``p99`` and ``max``. Times are measured where the environment runs; an
            operation that exceeds its limit counts with the limit.
        """
        return {
            "steps": self._book.steps,
            "resets": self._book.resets,
            "faults": dict(self._book.faults),
            **self._backend.report(),
        }

    def close_extras(self, **kwargs: Any) -> None:
        """Close all environments and end all workers."""
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property  # type: ignore[misc]
    def np_random(self) -> Any:
        """The generator of each environment; a copy if the environment is in a worker."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> Any:
        """The seed of each environment."""
        return self.get_attr("np_random_seed")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name}, num_envs={self.num_envs}, backend={type(self._backend).__name__})"

    # Checks and batches.

    def _on_each(self, method: str, *args: Any, indices: Sequence[int] | None = None) -> list[Any]:
        chosen = self._chosen(indices)
        return self._backend.run(chosen, [(method, *args)] * len(chosen))

    def _chosen(self, indices: Sequence[int] | None) -> Sequence[int]:
        """Return the validated slots; none may have a pending action."""
        if indices is None:
            chosen: Sequence[int] = self._all
        else:
            chosen = [int(index) for index in indices]
            if len(set(chosen)) < len(chosen) or not all(0 <= slot < self.num_envs for slot in chosen):
                raise ConfigError(f"indices must be distinct slots below {self.num_envs}, got {chosen}.")
        self._require_idle(chosen)
        return chosen

    def _require_idle(self, chosen: Sequence[int]) -> None:
        under_way = self._pending.keys() | self._ready.keys() if self._ready else self._pending.keys()
        if under_way and not under_way.isdisjoint(chosen):
            busy = sorted(under_way & set(chosen))
            raise AlreadyPendingCallError(f"slots {busy} have an action under way: call recv() first.", "send")

    def _ops(self, chosen: Sequence[int], actions: Any) -> list[Any]:
        """Return one operation per slot, or raise before any is executed."""
        step_op = self._book.step_op
        split = self._packing.split(actions, len(chosen))
        ops = [step_op(slot, action) for slot, action in zip(chosen, split, strict=True)]
        if self._packing.takes_text:
            for op, slot in zip(ops, chosen, strict=True):
                if op[0] == "step" and not isinstance(op[1], str):
                    raise TypeError(f"the action of slot {slot} must be a str, got {type(op[1]).__name__}.")
        return ops


def _kept(last: Result) -> Result:
    """Return a copy of an episode's end, in case the next reset reuses the environment's buffers."""
    return copied(last[0]), *last[1:4], copied(last[4]), last[5]


def _joined(last: Result, first: Result) -> Result:
    """Return the end of an episode joined with the start of the next, as in Gymnasium's SAME_STEP mode."""
    info = {"final_obs": last[0], "final_info": last[4], **first[4]}
    return first[0], last[1], last[2], last[3], info, ()
