"""Environments with one planted fault each: in what they save, what they tell, and what they paint."""

import pickle
from typing import Any

import numpy as np
from sound_env import Sound

from turngym.envs.core import Outcome
from turngym.envs.pictures import PictureEnv
from turngym.types import JSONValue


class NamesNothing(Sound):
    def begin(self, task: str | int | None) -> str:
        text = super().begin(task)
        self.instance = ""
        return text

    def resample_hidden(self) -> bool:
        return False


class NamesTooCoarsely(Sound):
    def begin(self, task: str | int | None) -> str:
        super().begin(task)
        self.instance = f"coin in cave {self.place % 2}"
        return f"64 boxes, wind {self._noise()}"

    def resample_hidden(self) -> bool:
        return False


class SavesASet(Sound):
    def save_state(self) -> JSONValue:
        return {self.place, self.low, self.high}


class Pickles(Sound):
    def snapshot(self) -> bytes:
        return pickle.dumps(super().snapshot())


class SavesTheHour(Sound):
    saved = 0

    def save_state(self) -> JSONValue:
        self.saved += 1
        return [self.place, self.low, self.high, self.saved]

    def load_state(self, state: JSONValue) -> None:
        super().load_state(state[:3])


class KeepsAGenerator(Sound):
    """Has a generator of its own and does not save it."""

    def begin(self, task: str | int | None) -> str:
        text = super().begin(task)
        self.own = np.random.default_rng(int(self.np_random.integers(2**32)))
        return text

    def _noise(self) -> int:
        return int(self.own.integers(100))


class ForgetsTheGenerator(Sound):
    def restore(self, snapshot: bytes) -> Any:
        result = super().restore(snapshot)
        self.np_random.random()
        return result


class ForgetsInASnapshot(Sound):
    def load_state(self, state: JSONValue) -> None:
        super().load_state([state[0], 0, 63])


class MovesTheCoin(Sound):
    def load_state(self, state: JSONValue) -> None:
        super().load_state(state)
        self.place = min(self.high, self.place + 1)


class RestoresOnlyUsedCopies(Sound):
    def load_state(self, state: JSONValue) -> None:
        if "place" not in vars(self):
            raise RuntimeError("reset() first")
        super().load_state(state)


class TellsAtOnce(Sound):
    def begin(self, task: str | int | None) -> str:
        return f"{super().begin(task)}, box {(self.place * 5 + 3) % 64} is special"


class TellsWhenAsked(Sound):
    def apply_action(self, action: str) -> Outcome[str]:
        outcome = super().apply_action(action)
        if outcome.action_is_valid:
            return outcome
        return outcome._replace(observation=f"{outcome.observation}, it is not {self.place + 1}")


class TellsInTheAnchor(Sound):
    def anchor(self) -> str:
        return f"{super().anchor()}, {self.place}"


class TellsInTheList(Sound):
    def legal_actions(self) -> tuple[str, ...]:
        return tuple(sorted(super().legal_actions(), key=lambda action: action != f"open {self.place}"))


class TellsInProgress(Sound):
    def progress(self) -> float:
        return self.place / 64


class TellsTheTurn(Sound):
    def anchor(self) -> str:
        return f"{super().anchor()}, turn {self.turn}"


class CountsTurns(Sound):
    def begin(self, task: str | int | None) -> str:
        self.left = 20
        return super().begin(task)

    def apply_action(self, action: str) -> Outcome[str]:
        self.left -= 1
        return super().apply_action(action)

    def anchor(self) -> str:
        return f"{super().anchor()}, {self.left} left"

    def save_state(self) -> JSONValue:
        return [super().save_state(), self.left]

    def load_state(self, state: JSONValue) -> None:
        super().load_state(state[0])
        self.left = state[1]


class UnstableTasks(Sound):
    def tasks(self) -> tuple[str, ...]:
        return ("first", "second")


class SharesSplits(Sound):
    def begin(self, task: str | int | None) -> str:
        super().begin(task)
        self.place = int(self.np_random.integers(4))
        self.instance = f"coin in {self.place}"
        return "64 boxes"


class Mute(Sound):
    def render_text(self) -> Any:
        return None


class NarrowReset(Sound):
    """Takes no options."""

    def reset(self, *, seed: int | None = None) -> Any:  # type: ignore[override]
        return super().reset(seed=seed)


class Painted(Sound, PictureEnv):
    """Sound, with a picture."""

    def __init__(
        self, *, split: str = "train", env_id: str = "", render_mode: str | None = None, image: bool = True
    ) -> None:
        PictureEnv.__init__(self, max_turns=9, split=split, env_id=env_id, render_mode=render_mode, image=image)
        self.set_frame(4, 64)

    def render_image(self) -> Any:
        picture = np.zeros((4, 64, 3), np.uint8)
        picture[:, self.low : self.high + 1] = 255
        return picture


class PaintsTheCoin(Painted):
    def render_image(self) -> Any:
        picture = super().render_image()
        picture[0, self.place] = 7
        return picture


class PaintsOver(Painted):
    """Paints every picture into one array."""

    def render_image(self) -> Any:
        if "canvas" not in vars(self):
            self.canvas = np.zeros((4, 64, 3), np.uint8)
        self.canvas[:] = super().render_image()
        return self.canvas


class PaintsGrey(Painted):
    def render(self) -> Any:
        found = super().render()
        return found[:, :, 0] if isinstance(found, np.ndarray) else found


FAULTS: list[tuple[Any, str, str]] = [
    (PaintsOver, "results-not-shared", "was changed by a later turn"),
    (NamesNothing, "instance-named", "a string that is not empty, got ''"),
    (NamesTooCoarsely, "instance-named", "have the same self.instance and begin differently"),
    (SavesASet, "snapshot-json", "TypeError: Object of type set is not JSON serializable"),
    (Pickles, "snapshot-json", "is not JSON"),
    (SavesTheHour, "snapshot-json", "two snapshots of one state differ"),
    (KeepsAGenerator, "snapshot-generator", "restore() leaves the generator self.own where it was"),
    (ForgetsTheGenerator, "snapshot-generator", "restore() leaves the generator self.np_random where it was"),
    (ForgetsInASnapshot, "snapshot-exact", "restore() in the same copy returns another observation or info"),
    (MovesTheCoin, "snapshot-exact", "a snapshot taken after restore() in the same copy is another one"),
    (RestoresOnlyUsedCopies, "snapshot-exact", "reset() first"),
    (TellsAtOnce, "hidden-in-observation", "tasks with the same anchor begin with"),
    (TellsWhenAsked, "hidden-in-observation", "the answer to a text that is no action tells a hidden fact"),
    (PaintsTheCoin, "hidden-in-observation", "picture tells a hidden fact"),
    (TellsInTheAnchor, "hidden-in-anchor", "anchor tells a hidden fact"),
    (TellsInTheList, "hidden-in-legal-actions", "legal_actions tells a hidden fact"),
    (TellsInProgress, "hidden-in-progress", "progress tells a hidden fact"),
    (TellsTheTurn, "anchor-timeless", "the anchor changes with self.turn alone"),
    (CountsTurns, "anchor-timeless", "a number in the anchor moves by one in every turn"),
    (UnstableTasks, "tasks-bind", "task 'first' is another instance with another seed"),
    (SharesSplits, "splits-disjoint", "of train (seed"),
    (Mute, "renders", "render_mode 'ansi' must give text, got NoneType"),
    (PaintsGrey, "renders", "must give uint8 [height, width, 3], got uint8 (4, 64)"),
    (NarrowReset, "gymnasium-accepts", "options"),
]
"""The class, the one rule that it breaks, and what is said of it."""
