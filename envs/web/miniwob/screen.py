"""Text and state of a MiniWoB++ page after a turn."""

from __future__ import annotations

from dataclasses import dataclass

from turngym.envs.web.driver.page import Node, normalised, page_text
from turngym.envs.web.driver.tree import Branch, normalised_tree, tree_text


@dataclass(frozen=True, slots=True)
class Screen:
    """Text of a page.

    Args:
        goal: The task in words.
        nodes: The elements.
        is_done: Whether the page has ended the episode.
        raw_reward: Its reward without regard to time.
        decayed_reward: Its reward, less for the time taken.
        problem: Why the last action could not be done; empty if it was.
        notice: Blocked attempts of the page; empty for none.
        tree: Chromium's accessibility tree, where that is what the agent sees.
    """

    goal: str
    nodes: tuple[Node, ...]
    is_done: bool = False
    raw_reward: float = 0.0
    decayed_reward: float = 0.0
    problem: str = ""
    notice: str = ""
    tree: tuple[Branch, ...] | None = None

    @property
    def page(self) -> str:
        """The page as the agent sees it."""
        return page_text(self.nodes) if self.tree is None else tree_text(self.tree)

    @property
    def canonical(self) -> str:
        """The same with the elements numbered from the top, however the page came to be so."""
        return normalised(self.nodes) if self.tree is None else normalised_tree(self.tree)

    @property
    def text(self) -> str:
        """Goal, page and reward as one text."""
        return f"{self.goal}\n{self.page}\n{self.is_done} {self.raw_reward} {self.decayed_reward}"


BLANK = Screen("", ())
