"""A small convolutional network that looks at a picture and says where to click.

The picture is reduced to a map with a cell for every 8 x 8 pixels. A code of the whole picture scales and shifts the
features of all cells (Perez et al. 2018, arXiv 1709.07871), so that words in one place decide about shapes in another;
each cell then gets a logit. A fourth channel marks the last click, which screenshots do not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from turngym.errors import ConfigError
from turngym.storage.bounded import read_json
from turngym.storage.files import write_json

CELL = 8
"""Pixels between the centres of two cells."""
Click = tuple[float, float]
_NAMES = ("clicks.json", "clicks.safetensors")
_MARK = 4


@dataclass(frozen=True)
class ClickSettings:
    """Size of the network, and the part of the picture that it looks at, in pixels.

    Args:
        height: Height of that part.
        width: Its width.
        top: Distance from the top of the picture.
        left: Distance from its left.
        channels: Features of a cell.
        code: Numbers in the code of the whole picture.
    """

    height: int
    width: int
    top: int = 0
    left: int = 0
    channels: int = 24
    code: int = 64

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            lowest = {"top": 0, "left": 0, "height": CELL, "width": CELL}.get(name, 1)
            if type(value) is not int or not lowest <= value <= 4096:
                raise ConfigError(f"{name} of a click network must be a whole number in [{lowest}, 4096], got {value}.")

    @property
    def cells(self) -> tuple[int, int]:
        """Rows and columns of the map."""
        return self.height // CELL, self.width // CELL

    def cell_of(self, click: Click) -> int:
        """Return the number of the cell that a point of the picture is in, the nearest one for points outside.

        >>> settings = ClickSettings(height=16, width=24)
        >>> settings.cell_of((23.0, 9.0)), settings.click_of(5)
        (5, (20.0, 12.0))
        """
        rows, columns = self.cells
        row = min(max(int((click[1] - self.top) // CELL), 0), rows - 1)
        return row * columns + min(max(int((click[0] - self.left) // CELL), 0), columns - 1)

    def click_of(self, cell: int) -> Click:
        """Return the point of the picture in the middle of a cell."""
        row, column = divmod(cell, self.cells[1])
        return self.left + (column + 0.5) * CELL, self.top + (row + 0.5) * CELL

    def view(self, image: NDArray[np.uint8], last: Click | None = None) -> NDArray[np.uint8]:
        """Return what the network sees of a picture: the colours of its part of it and a mark at the last click.

        Args:
            image: The picture, [H, W, 3].
            last: Last click, if there was one.

        Returns:
            The part, [4, height, width].

        Raises:
            ConfigError: The picture is smaller.
        """
        bottom, right = self.top + self.height, self.left + self.width
        if image.shape[0] < bottom or image.shape[1] < right:
            raise ConfigError(
                f"the click network looks at pixels up to {right} x {bottom}, and the picture has {image.shape[1]} x "
                f"{image.shape[0]}: play with the width and height that it was trained with."
            )
        seen = np.zeros((4, self.height, self.width), np.uint8)
        seen[:3] = image[self.top : bottom, self.left : right].transpose(2, 0, 1)
        if last is not None:
            x, y = int(last[0]) - self.left, int(last[1]) - self.top
            seen[3, max(y - _MARK, 0) : max(y + _MARK, 0), max(x - _MARK, 0) : max(x + _MARK, 0)] = 255
        return seen


class ClickNetwork(nn.Module):
    """Logits of clicks on the cells of a picture.

    Args:
        settings: Its size.
    """

    def __init__(self, settings: ClickSettings) -> None:
        super().__init__()
        self.settings = settings
        rows, columns = settings.cells
        wide = settings.channels
        self.stem = nn.Sequential(
            *(nn.Conv2d(4, 16, 8, stride=4, padding=2), nn.ReLU()),
            *(nn.Conv2d(16, wide, 4, stride=2, padding=1), nn.ReLU()),
        )
        self.code = nn.Sequential(
            *(nn.Conv2d(wide, 8, 1), nn.ReLU(), nn.Flatten()),
            *(nn.Linear(8 * rows * columns, settings.code), nn.ReLU(), nn.Linear(settings.code, 2 * wide)),
        )
        self.near = nn.Sequential(nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU())
        self.wider = nn.Sequential(nn.Conv2d(wide, wide, 3, padding=2, dilation=2), nn.ReLU())
        self.last = nn.Conv2d(wide, 1, 1)
        self.places = nn.Parameter(torch.zeros(rows * columns))

    def forward(self, views: Tensor) -> Tensor:
        """Return the logits.

        Args:
            views: Results of :meth:`ClickSettings.view`, [B, 4, height, width], bytes.

        Returns:
            Logits of the cells, row by row, [B, rows * columns].
        """
        seen = self.stem(views.float() / 255 - 0.5)
        scale, shift = self.code(seen).unsqueeze(-1).unsqueeze(-1).chunk(2, 1)
        cells = self.near(seen) * (1 + scale) + shift
        logits: Tensor = self.last(cells + self.wider(torch.relu(cells)))
        return logits.flatten(1) + self.places

    def save(self, folder: Path) -> None:
        """Write settings and weights to a folder, which is created."""
        folder.mkdir(parents=True, exist_ok=True)
        settings, weights = (folder / name for name in _NAMES)
        save_file(dict(self.state_dict()), weights)
        write_json(settings, asdict(self.settings))


def build_clicks(settings: ClickSettings, seed: int) -> ClickNetwork:
    """Return a network whose first weights depend on ``seed`` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ClickNetwork(settings)


def load_clicks(folder: Path) -> ClickNetwork:
    """Return the network that :meth:`ClickNetwork.save` wrote.

    Raises:
        ConfigError: There is none, or its files do not fit together.
    """
    settings, weights = (folder / name for name in _NAMES)
    try:
        with torch.device("meta"):  # sizes without weights take no memory
            network = ClickNetwork(ClickSettings(**read_json(settings)))
        found = load_file(weights)
        if not all(bool(each.isfinite().all()) for each in found.values()):
            raise ValueError("a weight is not finite")
        copied = {name: each.to(torch.float32, copy=True) for name, each in found.items()}
        network.load_state_dict(copied, assign=True)
    except Exception as error:  # files of somebody else: whatever is wrong, it is no such network
        raise ConfigError(
            f"{folder} holds no click network, which is {_NAMES[0]} and {_NAMES[1]} as ClickNetwork.save writes them: "
            f"{str(error)[:200]}"
        ) from error
    return network.eval()


def batch(views: Sequence[NDArray[np.uint8]]) -> Tensor:
    """Return views as one tensor of bytes, [B, 4, height, width]."""
    return torch.from_numpy(np.stack(views))
