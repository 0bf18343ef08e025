"""WebShop: search a shop for what a customer asks, choose its options and buy it.

Source of the task and its reward: Yao et al. 2022, arXiv 2207.01206. Shop, search and pages are turngym's own.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task, require_running
from turngym.envs.webshop import pages
from turngym.envs.webshop.catalogue import PROCEDURAL, Catalogue, from_folder, procedural
from turngym.envs.webshop.html import LONGEST_QUERY
from turngym.envs.webshop.pages import (
    BACK_TO_SEARCH,
    BOUGHT,
    BUY,
    ITEM,
    NEXT,
    PAGE_SIZE,
    PREVIOUS,
    RESULTS,
    SEARCH,
    Move,
    View,
)
from turngym.envs.webshop.product import Goal, Product
from turngym.envs.webshop.reward import Reward, reward, visible_reward
from turngym.errors import ConfigError
from turngym.options import between
from turngym.types import JSONValue

if TYPE_CHECKING:
    from turngym.envs.webshop.browser import ShopTab, Shown


_ACTION = re.compile(r"\s*(search|click)\s*\[(.*)\]\s*", re.IGNORECASE | re.DOTALL)
_WITHIN = re.compile(r"\b(?:search|click)\s*\[[^\[\]\n]*\]", re.IGNORECASE)
_RULES = """You are in a web shop. Find what the customer asks for, choose the options asked for, and buy it.
Answer with one action: search[words] on the search page, or click[what stands in square brackets] on any other page.
You have {turns} turns. Buying ends the episode; the closer the product and its options are to what was asked for, the \
higher the reward, 1 at most."""
_UNREAD = "Unknown action: answer with search[words] or click[thing]."


class WebShop(PictureEnv):
    """Buy a product that matches a customer's request in a shop of about a thousand products.

    The episode terminates with the purchase, with the published reward in [0, 1]; success is a reward of 1. The
    progress is the reward of buying now, as far as the pages show it. On the search page the only listed legal action
    is a search for the request itself; any other search is legal too.

    With ``mode="browser"`` the same pages are served on the loopback to a real browser, which can reach nothing else;
    actions click and type there, and the observation is read from the document. It is the same text.

    >>> env = WebShop(products=50)
    >>> observation, info = env.reset(seed=0)
    >>> observation.splitlines()[-1]
    '[search]'
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> reward
    1.0
    """

    class Options(PictureEnv.Options):
        catalogue: str = PROCEDURAL
        """``"procedural"``, or a folder with the files of the published shop (see
        :mod:`turngym.envs.webshop.files`)."""
        products: Annotated[int, between(50, 100000)] = 1000
        """Products of the generated shop."""
        shop_seed: Annotated[int, between(0, 34**4 - 1)] = 0
        """Which generated shop."""
        show_goal: bool = True
        """True if every page repeats the request, as in the published environment, or only the first."""
        mode: Literal["text", "browser"] = "text"
        """``"text"``, or ``"browser"`` for a real browser."""
        width: Annotated[int, between(320, 2000)] = 800
        """Width of the browser's page in pixels."""
        height: Annotated[int, between(240, 2000)] = 600
        """Height of the browser's page in pixels."""
        max_turns: MaxTurns = 15

    options: Options

    file_options = worded("mode")
    finds_action = True
    beaten_by: ClassVar[Mapping[str, str]] = {
        "winners' most frequent action": "buying whatever product is open earns a part of the score, never a success, "
        "and random play often leaves the page before it buys.",
    }

    def setup(self) -> None:
        options = self.options
        if options.mode != "browser":
            self.metadata = TextEnv.metadata  # of this instance: only a browser has images
            self._require_render_mode(self.render_mode)
        self._shop = (
            procedural(options.products, options.shop_seed)
            if options.catalogue == PROCEDURAL
            else from_folder(options.catalogue)
        )
        self._targets = self._shop.targets[self.split]
        if not self._targets:
            raise ConfigError(
                f"{self.env_id} has no product of split {self.split!r} in {options.catalogue!r}: take a larger shop."
            )
        self._show_goal = options.show_goal
        self.instructions = _RULES.format(turns=self.max_turns)
        self._tab: ShopTab | None = None
        self._prepared: tuple[str, Shown] | None = None
        self._is_deferred = False
        if options.mode == "browser":
            self._tab = self._browser_tab(options.width, options.height)
        elif self.image:
            raise ConfigError(f"{self.env_id} has pictures in a browser only: pass mode='browser', or image=False.")
        else:  # nothing recorded of the text depends on these
            left_out = ("mode", "width", "height")
            self.settings = {name: value for name, value in self.settings.items() if name not in left_out}

    def _browser_tab(self, width: int, height: int) -> ShopTab:
        from turngym.envs.web.driver.chromium import find_browser, require_playwright
        from turngym.envs.webshop.browser import ShopTab

        require_playwright(f"{self.env_id} in a browser")
        find_browser(f"{self.env_id} in a browser")
        self.set_frame(height, width)
        tab = ShopTab(self._shop, self._show_goal, (width, height), with_image=self.image)
        weakref.finalize(self, ShopTab.let_go, tab)
        return tab

    @property
    def shop(self) -> Catalogue:
        """The shop, to look at."""
        return self._shop

    @property
    def goal(self) -> Goal:
        """Request of the customer, its product included; hidden from agents."""
        return self._goal

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        target = self._targets[int(self.np_random.integers(len(self._targets)))]
        goals = self._shop.goals(target)
        self._goal = goals[int(self.np_random.integers(len(goals)))]
        self.instance = f"{self._shop.name}: {self._goal.text}"
        self._view, self._reward = View(), 0.0
        if self._tab is None:
            return self._show(True)
        self._prepared = None
        return "" if self._is_deferred else self._arrive(self._tab.run(self._tab.begin(self._goal.instruction)))

    def _arrive(self, shown: Shown) -> str:
        """Take over where the browser is."""
        self._view = shown.view
        return shown.text

    @property
    def _target(self) -> Product:
        return self._shop.by_asin[self._goal.asin.lower()]

    def _show(self, with_goal: bool) -> str:
        page = pages.text(self._shop, self._view)
        return f"Customer: {self._goal.instruction}\n{page}" if with_goal else page

    def apply_action(self, action: str) -> Outcome[str]:
        move = self._read(action)
        if isinstance(move, str):
            return Outcome(move, action_is_valid=False)
        if self._tab is None:
            self._view = pages.after(self._shop, self._view, move)
            observation = self._show(self._show_goal and self._view.page != BOUGHT)
        else:
            prepared, self._prepared = self._prepared, None
            if prepared is None or prepared[0] != action:
                prepared = action, self._tab.run(self._tab.go(move, self._view, self._goal.instruction))
            observation = self._arrive(prepared[1])
        if self._view.page != BOUGHT:
            return Outcome(observation)
        self._reward = self.purchase().total
        return Outcome(observation, self._reward, True, self._reward == 1)

    def _read(self, action: str) -> Move | str:
        """Return the move that an action writes, or the answer to one that is not possible here."""
        within = _WITHIN.findall(action)
        found = _ACTION.fullmatch(within[-1] if within else action)
        if found is None:
            return _UNREAD
        if found[1].lower() == "click":
            target = " ".join(found[2].lower().split())
            links = pages.clickables(self._shop, self._view)
            if target in links:
                return Move(target)
            listed = ", ".join(links) or "nothing: search first"
            return f"There is no {target[:80]!r} to click here. You can click {listed}."
        if self._view.page != SEARCH:
            return "You can search on the search page only: click[back to search] first."
        query = " ".join(_typed(found[2]).split())[:LONGEST_QUERY]
        return (
            Move(query, is_search=True) if query else "You searched for nothing: name words, as in search[red shoes]."
        )

    def purchase(self) -> Reward:
        """Return what buying the product on the current page earns, part by part; not for agents.

        Raises:
            ConfigError: No product is looked at.
        """
        if not self._view.asin:
            raise ConfigError(f"{self.env_id} shows no product: there is nothing to buy.")
        return reward(self._shop.by_asin[self._view.asin], self._view.chosen, self._goal, self._target)

    def anchor(self) -> str:
        view = self._view
        chosen = ", ".join(f"{name}={value}" for name, value in sorted(view.chosen.items()))
        return "\n".join(
            [self._goal.instruction, view.page, view.query, str(view.number), view.asin, view.detail, chosen]
        )

    def legal_actions(self) -> tuple[str, ...]:
        if self._view.page == SEARCH:
            return (f"search[{self._goal.instruction[:LONGEST_QUERY]}]",)
        return tuple([f"click[{link}]" for link in pages.clickables(self._shop, self._view)])

    def progress(self) -> float:
        if not self._view.asin:
            return 0.0
        return visible_reward(self._shop.by_asin[self._view.asin], self._view.chosen, self._goal)

    def score(self) -> float:
        return self._reward

    def save_state(self) -> JSONValue:
        place = self._shop.goals(self._target).index(self._goal)
        return {"asin": self._goal.asin, "goal": place, "view": asdict(self._view), "reward": self._reward}

    def load_state(self, state: JSONValue) -> None:
        goal = self._shop.goals(self._shop.by_asin[state["asin"].lower()])[state["goal"]]
        view = View(**state["view"])
        if view.page not in (SEARCH, RESULTS, ITEM, BOUGHT) or (view.asin and view.asin not in self._shop.by_asin):
            raise ValueError(f"the page {view!r}")
        self._goal, self._view, self._reward = goal, view, float(state["reward"])

    def expert_action(self) -> str:
        """Return the next step towards the product that the request was made from, which only the oracle knows.

        It searches for the request, or for the product's title where the request does not find it.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return next_action(self._shop, self._view, self._goal, self._target)

    # Coroutines, for the vector backend asyncio.

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; see ``reset``."""
        if self._tab is None:
            return self.reset(seed=seed, options=options)
        self._is_deferred = True
        try:
            TextEnv.reset(self, seed=seed, options=options)
        finally:
            self._is_deferred = self._running = False
        self._observation = self._arrive(await self._tab.attend(self._tab.begin(self._goal.instruction)))
        self._running = True
        info = self._info()
        return (self._with_image(self._observation) if self.image else self._observation), info

    async def async_step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one turn; see ``step``."""
        move = self._read(action) if self._tab is not None and self._running and isinstance(action, str) else ""
        if self._tab is not None and not isinstance(move, str):
            self._prepared = action, await self._tab.attend(self._tab.go(move, self._view, self._goal.instruction))
        return self.step(action)

    async def async_close(self) -> None:
        """Close the page."""
        if self._tab is not None:
            await self._tab.attend(self._tab.close())
        super().close()

    def close(self) -> None:
        """Close the page, if it is one in a browser; a later reset opens a new one."""
        if self._tab is not None:
            self._tab.shut()
        super().close()

    def render_image(self) -> NDArray[np.uint8]:
        from turngym.envs.web.driver.marks import decode

        if self._tab is None:
            raise ConfigError(f"{self.env_id} has pictures in a browser only: pass mode='browser'.")
        return decode(self._tab.picture(self._view, self._goal.instruction))


def _typed(text: str) -> str:
    """Return a text as a keyboard can write it: what cannot be printed is a blank."""
    return text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)


def next_action(catalogue: Catalogue, view: View, goal: Goal, target: Product) -> str:
    """Return the next step towards a product, from anywhere in the shop.

    It searches for the request, or for the product's title where the request does not find it.

    Args:
        catalogue: The shop.
        view: Where the customer is.
        goal: The wish.
        target: The product that it was made from.
    """
    if view.page == SEARCH:
        wish = goal.instruction[:LONGEST_QUERY]
        return f"search[{wish if target in catalogue.search(wish) else target.title[:LONGEST_QUERY]}]"
    if view.page == RESULTS:
        return f"click[{_result_link(catalogue, view, target)}]"
    if view.asin != target.asin.lower() or view.detail:
        return f"click[{PREVIOUS}]"
    missing = [value for name, value in goal.options.items() if view.chosen.get(name) != value]
    return f"click[{missing[0] if missing else BUY}]"


def _result_link(catalogue: Catalogue, view: View, target: Product) -> str:
    found = catalogue.search(view.query)
    if target not in found:
        return BACK_TO_SEARCH
    page = found.index(target) // PAGE_SIZE
    if page == view.number:
        return target.asin.lower()
    return NEXT if page > view.number else PREVIOUS
