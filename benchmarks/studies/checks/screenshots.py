"""Pictures of the pages, in both themes and at the width of a phone, taken by a real browser.

    python benchmarks/studies/checks/screenshots.py [--run FOLDER]

Plays `turngym-core` with agents of graded skill (in a share of the episodes the expert acts, in the others the random
agent), and a tournament of Werewolf; shows them, and a training run, as users would, and writes the pictures to
``benchmarks/results/screenshots/``. Needs Playwright and Debian's package chromium-headless-shell.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from turngym.__main__ import main as turngym
from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import AgentSettings
from turngym.agents.players.expert import ExpertAgent
from turngym.agents.players.random import RandomAgent
from turngym.agents.usage import Usage
from turngym.envs.vector import TextVectorEnv
from turngym.seeding import stream
from turngym.storage.files import write_atomic

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[3]
TARGET = ROOT / "benchmarks" / "results" / "screenshots"
RUN = ROOT / "runs" / "benchmarks" / "quickstart-seed0"
SUITE, EPISODES = "turngym-core", 15
SKILLS = {"steady": 0.9, "steady-v2": 0.86, "half": 0.55, "novice": 0.3}
VIEWS = {"light": (1280, "light"), "dark": (1280, "dark"), "phone": (400, "light")}
TALLEST, COLOURS = 2000, 96
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]


class Blend(Agent):
    """The expert in a share of the episodes, the random agent in the others; with tokens and costs as a model has.

    Args:
        name: Its name, on which its luck depends.
    """

    def __init__(self, name: str) -> None:
        self.name, self.skill, self.expert, self.random = name, SKILLS[name], ExpertAgent(), RandomAgent(1)

    def attach(self, vector: TextVectorEnv) -> None:
        """Note the vector whose solvers are asked."""
        self.expert.attach(vector)

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return one decision for each request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Decision:
        knows = stream("blend", self.name, request.instructions, request.episode).random() < self.skill
        (decision,) = (self.expert if knows else self.random).act([request])
        tokens = len(str(request.observation)) // 4
        return replace(decision, usage=Usage(tokens_in=tokens, tokens_out=12, calls=1, cost=1e-6 * (tokens + 48)))


def maker(name: str) -> Callable[[AgentSettings], Agent]:
    """Return what ``--agent module:...`` calls."""
    return lambda settings: Blend(name)


steady, steady_v2, half, novice = map(maker, SKILLS)


def play(folder: Path) -> None:
    """Play what is shown: submissions, one of them forged, and a tournament."""
    words = ["eval", SUITE, "--episodes", str(EPISODES)]
    turngym([*words, "--agent", "random", "--baselines", "--out", str(folder / "board" / "random")])
    turngym([*words, "--agent", "expert", "--out", str(folder / "board" / "expert")])
    for name in SKILLS:
        out = folder / "board" / name
        turngym([*words, "--agent", f"module:screenshots.{name.replace('-', '_')}", "--out", str(out)])
        metadata = json.loads((out / "metadata.json").read_text("utf8"))
        metadata |= {"name": name, "contact": "someone@example.org", "open_weights": True, "trained_on_suite": False}
        metadata["models"] = {"player_0": {"id": f"example/{name}", "revision": "main"}}
        write_atomic(out / "metadata.json", json.dumps(metadata))
    forged = folder / "board" / "forged"
    shutil.copytree(folder / "board" / "novice", forged)
    results = json.loads((forged / "results.json").read_text("utf8"))
    results["mean"]["value"] = 0.99
    write_atomic(forged / "results.json", json.dumps(results))
    turngym(["tournament", "turngym/Werewolf-v0", "--blocks", "30", "--out", str(folder / "tournament")])


def pages(folder: Path, run: Path | None) -> Mapping[str, Path]:
    """Write the pages as the commands do, and return where they are."""
    found = {name: folder / f"{name}.html" for name in ("leaderboard", "evaluation", "report", "viewer")}
    turngym(["leaderboard", str(folder / "board"), "-o", str(found["leaderboard"])])
    turngym(["report", str(folder / "board" / "random"), "-o", str(found["evaluation"])])
    turngym(["view", str(folder / "board" / "half"), "-o", str(found["viewer"]), "--episodes", "40"])
    if run is None:
        found.pop("report")
    else:
        turngym(["report", str(run), "-o", str(found["report"])])
    return {**found, "tournament": folder / "tournament" / "page.html"}


def take(browser: Browser, address: str, view: str) -> bytes:
    """Return a picture of a page from its top, as a small PNG."""
    width, scheme = VIEWS[view]
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_load_state("networkidle")
    picture = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": _height(page)})
    context.close()
    small = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS).save(small, "PNG", optimize=True)
    return small.getvalue()


def _height(page: Page) -> int:
    return min(TALLEST, int(page.evaluate("document.documentElement.scrollHeight")))


def pictures(found: Mapping[str, Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and picture of every page in every view."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium-headless-shell"), args=FLAGS)
        for name, path in found.items():
            for view in VIEWS:
                yield f"{name}-{view}.png", take(browser, path.as_uri(), view)
        browser.close()


def main(argv: Sequence[str]) -> int:
    """Play, write the pages, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=RUN, help="folder of a training run, left out if it is not there")
    run: Path = parser.parse_args(argv).run.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        with contextlib.chdir(temporary):  # so that the pages show short paths
            play(Path())
            found = {name: path.resolve() for name, path in pages(Path(), run if run.is_dir() else None).items()}
        for name, picture in pictures(found):
            write_atomic(TARGET / name, picture)
            print(f"{name}: {len(picture) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
