"""WebShop: search a shop for what a customer asks, choose its options and buy it.

Source of the task and its reward: Yao et al. 2022, arXiv 2207.01206. Shop, search and pages are our own.
"""

from __future__ import annotations

import re
from dataclasses import asdict

from turngym.envs.core import Outcome, TextEnv
from turngym.envs.textgames.procedural import refuse_task, require_running, require_whole
from turngym.envs.webshop import pages
from turngym.envs.webshop.catalogue import PROCEDURAL, Catalogue, from_folder, procedural
from turngym.envs.webshop.pages import BOUGHT, BUY, ITEM, NEXT, PREVIOUS, RESULTS, SEARCH, View
from turngym.envs.webshop.product import Goal, Product
from turngym.envs.webshop.reward import Reward, reward, visible_reward
from turngym.errors import ConfigError
from turngym.types import JSONValue

_ACTION = re.compile(r"\s*(search|click)\s*\[(.*)\]\s*", re.IGNORECASE | re.DOTALL)
_LONGEST_QUERY = 300
_RULES = """You are in a web shop. Find what the customer asks for, choose the options asked for, and buy it.
Answer with one action: search[words] on the search page, or click[what stands in square brackets] on any other page.
You have {turns} turns. Buying ends the episode; the closer the product and its options are to what was asked for, the \
higher the reward, 1 at most."""
_UNREAD = "Unknown action: answer with search[words] or click[thing]."


class WebShop(TextEnv[str]):
    """A shop of about a thousand products and a customer with a wish.

    The episode terminates with the purchase, which pays the published reward in [0, 1]; success is a reward of 1. The
    progress is what buying now would pay, as far as the pages show it. On the search page the one legal action that is
    listed is a search for the wish itself; any other search is legal too.

    Args:
        catalogue: ``"procedural"``, or a folder with the files of the published shop (see
            :mod:`turngym.envs.webshop.files`).
        products: Products of the generated shop, 50 to 100,000.
        shop_seed: Which generated shop.
        show_goal: Whether every page repeats the wish, as the published environment does, or only the first.
        max_turns: Turns after which the episode is truncated.
        split: Share of the products that wishes are made from; all splits shop in the same catalogue.
        env_id: Registered id.
        render_mode: ``"ansi"`` or None.

    Raises:
        ConfigError: An option is out of its range, or the folder has no catalogue.

    >>> env = WebShop(products=50)
    >>> observation, info = env.reset(seed=0)
    >>> observation.splitlines()[-1]
    '[search]'
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> reward
    1.0
    """

    def __init__(
        self,
        catalogue: str = PROCEDURAL,
        products: int = 1000,
        shop_seed: int = 0,
        show_goal: bool = True,
        *,
        max_turns: int = 15,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        require_whole(self.env_id, "products", products, 50, 100_000)
        require_whole(self.env_id, "shop_seed", shop_seed, 0, 34**4 - 1)
        self._shop = procedural(products, shop_seed) if catalogue == PROCEDURAL else from_folder(catalogue)
        self._targets = self._shop.targets[split]
        if not self._targets:
            raise ConfigError(f"{self.env_id} has no product of split {split!r} in {catalogue!r}: take a larger shop.")
        self._show_goal = show_goal
        self.instructions = _RULES.format(turns=max_turns)

    @property
    def shop(self) -> Catalogue:
        """The shop, to look at."""
        return self._shop

    @property
    def goal(self) -> Goal:
        """What the customer asks for, its product included; not for agents."""
        return self._goal

    def _begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        target = self._targets[int(self.np_random.integers(len(self._targets)))]
        goals = self._shop.goals(target)
        self._goal = goals[int(self.np_random.integers(len(goals)))]
        self.instance = f"{self._shop.name}: {self._goal.text}"
        self._view, self._reward = View(), 0.0
        return self._show(True)

    @property
    def _target(self) -> Product:
        return self._shop.by_asin[self._goal.asin.lower()]

    def _show(self, with_goal: bool) -> str:
        page = pages.text(self._shop, self._view)
        return f"Customer: {self._goal.instruction}\n{page}" if with_goal else page

    def _advance(self, action: str) -> Outcome[str]:
        found = _ACTION.fullmatch(action)
        if found is None:
            return Outcome(_UNREAD, action_is_valid=False)
        if found[1].lower() == "search":
            return self._search(" ".join(found[2].split())[:_LONGEST_QUERY])
        return self._click(" ".join(found[2].lower().split()))

    def _search(self, query: str) -> Outcome[str]:
        if self._view.page != SEARCH:
            return Outcome(
                "You can search on the search page only: click[back to search] first.", action_is_valid=False
            )
        if not query:
            return Outcome("You searched for nothing: name words, as in search[red shoes].", action_is_valid=False)
        self._view = View(RESULTS, query)
        return Outcome(self._show(self._show_goal))

    def _click(self, target: str) -> Outcome[str]:
        links = pages.clickables(self._shop, self._view)
        if target not in links:
            listed = ", ".join(links) or "nothing: search first"
            return Outcome(f"There is no {target[:80]!r} to click here. You can click {listed}.", action_is_valid=False)
        self._view = pages.click(self._shop, self._view, target)
        if self._view.page != BOUGHT:
            return Outcome(self._show(self._show_goal))
        self._reward = self.purchase().total
        return Outcome(self._show(False), self._reward, True, self._reward == 1)

    def purchase(self) -> Reward:
        """Return what buying the product on the current page earns, part by part; not for agents.

        Raises:
            ConfigError: No product is looked at.
        """
        if not self._view.asin:
            raise ConfigError(f"{self.env_id} shows no product: there is nothing to buy.")
        return reward(self._shop.by_asin[self._view.asin], self._view.chosen, self._goal, self._target)

    def _anchor(self) -> str:
        view = self._view
        chosen = ", ".join(f"{name}={value}" for name, value in sorted(view.chosen.items()))
        return "\n".join(
            [self._goal.instruction, view.page, view.query, str(view.number), view.asin, view.detail, chosen]
        )

    def _legal_actions(self) -> tuple[str, ...]:
        if self._view.page == SEARCH:
            return (f"search[{self._goal.instruction[:_LONGEST_QUERY]}]",)
        return tuple([f"click[{link}]" for link in pages.clickables(self._shop, self._view)])

    def _progress(self) -> float:
        if not self._view.asin:
            return 0.0
        return visible_reward(self._shop.by_asin[self._view.asin], self._view.chosen, self._goal)

    def _score(self) -> float:
        return self._reward

    def _state(self) -> JSONValue:
        place = self._shop.goals(self._target).index(self._goal)
        return {"asin": self._goal.asin, "goal": place, "view": asdict(self._view), "reward": self._reward}

    def _load(self, state: JSONValue) -> None:
        goal = self._shop.goals(self._shop.by_asin[state["asin"].lower()])[state["goal"]]
        view = View(**state["view"])
        if view.page not in (SEARCH, RESULTS, ITEM, BOUGHT) or (view.asin and view.asin not in self._shop.by_asin):
            raise ValueError(f"the page {view!r}")
        self._goal, self._view, self._reward = goal, view, float(state["reward"])

    def expert_action(self) -> str:
        """Return the next step towards the product that the wish was made from, which only the oracle knows.

        It searches for the wish, or for the product's title where the wish does not find it.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        view, target = self._view, self._target
        if view.page == SEARCH:
            wish = self._goal.instruction[:_LONGEST_QUERY]
            return f"search[{wish if target in self._shop.search(wish) else target.title[:_LONGEST_QUERY]}]"
        if view.page == RESULTS:
            return f"click[{self._result_link(target)}]"
        if view.asin != target.asin.lower() or view.detail:
            return f"click[{PREVIOUS}]"
        missing = [value for name, value in self._goal.options.items() if view.chosen.get(name) != value]
        return f"click[{missing[0] if missing else BUY}]"

    def _result_link(self, target: Product) -> str:
        found = self._shop.search(self._view.query)
        if target not in found:
            return pages.BACK_TO_SEARCH
        page = found.index(target) // pages.PAGE_SIZE
        if page == self._view.number:
            return target.asin.lower()
        return NEXT if page > self._view.number else PREVIOUS
