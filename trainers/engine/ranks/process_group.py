"""Ranks over torch.distributed: JSON and tensors, no pickle."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import Store

from turngym.trainers.engine.ranks.base import Ranks
from turngym.trainers.engine.ranks.failures import RankLost, as_json, from_json, note_told

T = TypeVar("T")

_BUCKET = 2**25
"""Maximum number of elements summed in one message."""
_BEAT = 1.0
_LONGEST_NAP = 0.1


class ProcessGroup(Ranks):
    """The initialised default process group.

    Args:
        local_rank: Number of this process on its machine.
        store: Store of the group, through which ranks wait for rank 0.
        timeout: Timeout of a rank waiting for others.
    """

    def __init__(self, local_rank: int, store: Store, timeout: timedelta) -> None:
        super().__init__(dist.get_rank(), dist.get_world_size(), local_rank)
        self._store = store
        self._timeout = timeout
        self._waits = 0

    @contextmanager
    def _talking(self) -> Iterator[None]:
        """Context that measures communication time, and reports a lost rank."""
        start = time.perf_counter()
        try:
            yield
        except (RuntimeError, ValueError) as error:
            raise RankLost(
                f"rank {self.rank} of {self.size} lost the others: one of them has ended, see its message, or did not "
                f"answer within {self._timeout.total_seconds():.0f} s ({_first_sentence(error)})."
            ) from error
        finally:
            self.seconds += time.perf_counter() - start

    def exchange(self, work: Callable[[], T]) -> list[T]:
        """Do the work, then gather results and errors as JSON."""
        try:
            mine: dict[str, Any] = {"value": work()}
            sent = json.dumps(mine).encode()
        except RankLost:
            raise
        except Exception as error:
            self._all_gather(json.dumps({"error": as_json(error, self.rank)}).encode())
            note_told(error)
            raise
        found = [json.loads(each) for each in self._all_gather(sent)]
        failed = [each["error"] for each in found if "error" in each]
        if failed:
            raise from_json(failed[0])
        return [each["value"] for each in found]

    def _all_gather(self, sent: bytes) -> list[bytes]:
        with self._talking():
            length = torch.tensor([len(sent)])
            lengths = [torch.zeros_like(length) for _ in range(self.size)]
            dist.all_gather(lengths, length)
            longest = max(int(each) for each in lengths)
            padded = torch.zeros(longest, dtype=torch.uint8)
            padded[: len(sent)] = torch.frombuffer(bytearray(sent), dtype=torch.uint8)
            received = [torch.empty_like(padded) for _ in range(self.size)]
            dist.all_gather(received, padded)
            pairs = zip(received, lengths, strict=True)
            return [each[: int(length)].numpy().tobytes() for each, length in pairs]

    def on_first(self, work: Callable[[], T]) -> T:
        """Do the work on rank 0; the others monitor its heartbeat."""
        key = f"first-{self._waits}"
        self._waits += 1
        if self.is_first:
            with _Heartbeat(self._store, key):
                found = self._outcome(work)
        else:
            with self._talking():
                self._wait_for_first(key)
            found = {}
        outcome = json.loads(self._all_gather(json.dumps(found).encode())[0])
        if self.is_first:
            self._store.delete_key(f"{key}-done")
            self._store.delete_key(f"{key}-beat")
        if "error" not in outcome:
            return outcome["value"]  # type: ignore[no-any-return]
        if not self.is_first:
            raise from_json(outcome["error"])
        note_told(self._failure)
        raise self._failure

    _failure: Exception

    def _outcome(self, work: Callable[[], T]) -> dict[str, Any]:
        try:
            found = {"value": work()}
            json.dumps(found)
            return found
        except RankLost:
            raise
        except Exception as error:
            self._failure = error
            return {"error": as_json(error, self.rank)}

    def _wait_for_first(self, key: str) -> None:
        """Wait until rank 0 has finished, while its heartbeat continues."""
        nap, seen, since = 0.001, b"", time.monotonic()
        while not self._store.check([f"{key}-done"]):
            beat = self._store.get(f"{key}-beat") if self._store.check([f"{key}-beat"]) else b""
            if beat != seen:
                seen, since = beat, time.monotonic()
            if time.monotonic() - since > self._timeout.total_seconds():
                raise RuntimeError("the first rank does not respond")
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)

    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Sum in few messages: tensors of the same type and device are concatenated."""
        with self._talking():
            for bucket in _buckets(tensors):
                if len(bucket) == 1 and bucket[0].is_contiguous():
                    dist.all_reduce(bucket[0])
                    continue
                flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
                dist.all_reduce(flat)
                for tensor, part in zip(bucket, flat.split([each.numel() for each in bucket]), strict=True):
                    tensor.copy_(part.view_as(tensor))

    def broadcast(self, tensor: Tensor) -> None:
        """Send it."""
        with self._talking():
            dist.broadcast(tensor, 0)

    def concatenated(self, values: Tensor) -> Tensor:
        """Gather the vectors, each padded to the longest."""
        mine = values.detach().double().cpu()
        lengths = self.gathered(len(mine))
        padded = torch.zeros(max(lengths), dtype=torch.float64)
        padded[: len(mine)] = mine
        received = [torch.empty_like(padded) for _ in range(self.size)]
        with self._talking():
            dist.all_gather(received, padded)
        return torch.cat([each[:length] for each, length in zip(received, lengths, strict=True)])


def _first_sentence(error: Exception) -> str:
    """Return a backend's message, without code location and advice."""
    return re.sub(r"^\[[^\]]*\]\s*", "", str(error).strip()).splitlines()[0].split(". ")[0][:200]


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Yield tensors in order, grouped by type and device, up to a number of elements."""
    bucket: list[Tensor] = []
    filled = 0
    for tensor in tensors:
        last = bucket[-1] if bucket else tensor
        is_other = (tensor.dtype, tensor.device) != (last.dtype, last.device)
        if bucket and (is_other or filled + tensor.numel() > _BUCKET):
            yield bucket
            bucket, filled = [], 0
        bucket.append(tensor)
        filled += tensor.numel()
    if bucket:
        yield bucket


class _Heartbeat:
    """Writes a heartbeat to a store during work."""

    def __init__(self, store: Store, key: str) -> None:
        self._store, self._key = store, key
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def _beat(self) -> None:
        count = 0
        while not self._done.wait(_BEAT):
            count += 1
            self._store.set(f"{self._key}-beat", str(count))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self._store.set(f"{self._key}-done", "1")
