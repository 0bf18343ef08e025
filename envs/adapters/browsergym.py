"""Any task of BrowserGym (Le Sellier de Chezelles et al. 2024) as a :class:`TextEnv`.

What the adapter fixes: BrowserGym starts browsers that may not be installed, has no turn limit and no text observation,
reports a bad action in a field of the observation, keeps a broken browser, and lets the agent open and upload any local
file.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.envs.registration import registry

from turngym.arithmetic import as_float
from turngym.envs.adapters.borrowed import import_package, made_for
from turngym.envs.adapters.replayed import ReplayedEnv, Reply
from turngym.envs.core import MaxTurns
from turngym.envs.web.driver.chromium import find_browser
from turngym.envs.web.driver.page import quoted
from turngym.errors import ConfigError, UnknownName, missing_extra, nearest

ACTIONS = ("chat", "infeas", "bid", "coord", "nav", "tab")
_NAMESPACE = "browsergym/"
_FLAGS = ("--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-dev-shm-usage")
_WITHHELD = frozenset({"upload_file", "mouse_upload_file"})
"""Actions that read any file of the machine by its path."""
_OPENING, _SCHEMES = ("goto",), ("http://", "https://")
_MOST_LISTED = 300
_LONGEST_ERROR = 300


class BrowserGym(ReplayedEnv):
    """Adapter of BrowserGym tasks.

    Pages, goals, rewards and actions are BrowserGym's. An observation is its accessibility tree as text, after the goal
    at first and after the addresses of the tabs if there are several; an action is one of its calls, such as
    ``click('13')``. An action that it cannot parse or carry out is invalid, and the observation gives the reason. An
    episode that BrowserGym ends is terminated, and solved if the last reward is at least 1; ``max_turns`` truncates.
    The anchor is the goal, the address and the tree.

    BrowserGym starts new browsers at every reset and drives them with the blocking interface of Playwright, so one
    process should hold few of these environments: the vector backend ``process`` gives each its own. Its pages run in
    real time, so restoring a snapshot, which is the seed and the actions, may not reproduce the same page.
    """

    class Options(ReplayedEnv.Options):
        task: str = "browsergym/miniwob.click-test"
        """Id in BrowserGym's registry, e.g. ``"browsergym/miniwob.click-test"``; its package must be installed."""
        task_options: Mapping[str, Any] | None = None
        """Options that override that environment's defaults, JSON values only, such as ``{"pre_observation_delay":
        0.1}``."""
        actions: tuple[str, ...] = ACTIONS
        """Names of BrowserGym's action sets that the agent may use."""
        max_turns: MaxTurns = 30

    options: Options

    def setup(self) -> None:
        super().setup()
        options = self.options
        self.task, self._options = options.task, dict(options.task_options or {})
        self.source = f"{options.task} {sorted(self._options.items())}" if self._options else options.task
        self._game: Any = None
        with self._random.lent():
            _require_task(self.env_id, options.task)
            self._browser = find_browser(self.env_id)
            self._format, self._mapping = _action_set(self.env_id, options.actions)
            self._flatten = importlib.import_module("browsergym.utils.obs").flatten_axtree_to_str
        self.instructions = (
            "You see the accessibility tree of a web page; the elements that you can act on have ids in brackets.\n"
            f"{self._format}\nYou have {self.max_turns} turns."
        )
        self._seen_page: Mapping[str, Any] = {}
        self._text = ""

    def _made(self) -> Any:
        with made_for("BrowserGym", self.task):
            return gymnasium.make(
                self.task,
                disable_env_checker=True,
                **({"headless": True, "action_mapping": self._mapping} | self._options),
            ).unwrapped

    def foreign_reset(self, seed: int) -> str:
        playwright = importlib.import_module("playwright.sync_api")
        with _launching(self._browser):
            for attempt in range(2):
                if self._game is None:
                    self._game = self._made()
                try:
                    page, _ = self._game.reset(seed=seed)
                    break
                except playwright.Error as error:  # of the previous episode's browsers, or of these
                    self._drop()
                    if attempt:
                        raise ConfigError(
                            f"BrowserGym cannot start {self.task}: {str(error)[:_LONGEST_ERROR]}"
                        ) from error
        return f"Task: {page['goal']}\n{self._look(page)}"

    def foreign_step(self, action: str) -> Reply:
        page, reward, terminated, truncated, _ = self._game.step(action)
        error = str(page["last_action_error"])
        text = self._look(page)
        return Reply(
            observation=f"That cannot be done: {_first_line(error)}\n{text}" if error else text,
            reward=as_float(reward),
            terminated=bool(terminated),
            truncated=bool(truncated) and not terminated,
            success=as_float(reward) >= 1,
            action_is_valid=not error,
        )

    def _look(self, page: Mapping[str, Any]) -> str:
        """Return a page as text, and keep it."""
        self._seen_page = page
        tabs = page["open_pages_urls"]
        text = self._flatten(
            page["axtree_object"],
            page["extra_element_properties"],
            with_clickable=True,
            ignored_roles=["LineBreak", "InlineTextBox"],
        )
        self._text = text.replace(os.environ.get("MINIWOB_URL") or "\0", "")  # a local path is of no use
        if len(tabs) > 1:
            shown = int(page["active_page_index"][0])
            lines = [f"Tab {place}{' (shown)' if place == shown else ''}: {url}" for place, url in enumerate(tabs)]
            self._text = "\n".join([*lines, self._text])
        return self._text

    def anchor(self) -> str:
        return f"{self._seen_page.get('goal', '')}\n{self._seen_page.get('url', '')}\n{self._text}"

    def legal_actions(self) -> tuple[str, ...]:
        """Return calls that make sense on the page: clicks, and the goal's quoted words for its fields."""
        words = dict.fromkeys(quoted(str(self._seen_page.get("goal", "")))[:6])
        roles = {
            node.get("browsergym_id"): node.get("role", {}).get("value")
            for node in self._seen_page.get("axtree_object", {}).get("nodes", ())
        }
        found = ["noop()"]
        for bid, facts in self._seen_page.get("extra_element_properties", {}).items():
            if facts["clickable"] and facts["visibility"] >= 0.5:
                found.append(f"click({bid!r})")
            if roles.get(bid) == "textbox":
                found.extend(f"fill({bid!r}, {word!r})" for word in words)
        return tuple(found[:_MOST_LISTED])

    def _drop(self) -> None:
        """Close browsers, whatever state they are in."""
        game, self._game = self._game, None
        if game is not None:
            with contextlib.suppress(Exception):  # they may have ended by themselves
                game.close()

    def close(self) -> None:
        """Close the browsers; a later reset starts new ones."""
        self._drop()
        super().close()


def _require_task(feature: str, task: str) -> None:
    """Import the package that provides a task, and raise unless the task exists."""
    import_package("browsergym.core", feature, "browsergym-core", "browsergym")
    name = task.removeprefix(_NAMESPACE)
    family = name.partition(".")[0]
    if family == "miniwob" and "MINIWOB_URL" not in os.environ:
        os.environ["MINIWOB_URL"] = _miniwob_pages(feature)
    if "." in name and task not in registry:
        package = f"browsergym.{family}"
        if importlib.util.find_spec(package) is None:
            raise missing_extra(f"{task} of {feature}", f"browsergym-{family}", "browsergym")
        with made_for(feature, task):
            importlib.import_module(package)
    known = [each for each in registry if each.startswith(_NAMESPACE)]
    if task not in known:
        raise UnknownName(f"BrowserGym has no task named {task!r}. {nearest(task, known)[:300]}")


def _miniwob_pages(feature: str) -> str:
    """Return the address of the pages in the package miniwob; BrowserGym's own package has none."""
    spec = importlib.util.find_spec("miniwob")
    if spec is None or spec.origin is None:
        raise missing_extra(f"MiniWoB in {feature}", "miniwob", "browsergym")
    return f"{(Path(spec.origin).parent / 'html' / 'miniwob').as_uri()}/"


def _action_set(feature: str, names: Sequence[str]) -> tuple[str, Any]:
    """Return the description of the actions, and the function that turns them into code."""
    highlevel = importlib.import_module("browsergym.core.action.highlevel")
    for name in names:
        if name not in highlevel.ACTION_SUBSETS:
            known = list(highlevel.ACTION_SUBSETS)
            raise UnknownName(f"{feature} has no set of actions named {name!r}. {nearest(str(name), known)}")
    made = highlevel.HighLevelActionSet(list(names), multiaction=False)
    for name in _WITHHELD & made.action_set.keys():
        del made.action_set[name]

    def as_code(action: str) -> str:
        found = highlevel.highlevel_action_parser.search_string(action).as_list()
        for name, values in chain.from_iterable(found):
            texts = [getattr(value, "value", value) for value in values]
            if name in _OPENING and not all(str(text).startswith(_SCHEMES) for text in texts):
                raise ValueError("only addresses that start with http:// or https:// can be opened")
        return str(made.to_python_code(action))

    return made.describe(with_long_description=False, with_examples=False).strip(), as_code


@contextlib.contextmanager
def _launching(executable: str) -> Iterator[None]:
    """Run a block in which Playwright starts this browser, even where BrowserGym has no option for it."""
    kind = importlib.import_module("playwright.sync_api").BrowserType
    launch = kind.launch
    own = [*_FLAGS, *(["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else [])]

    def with_options(self: Any, **options: Any) -> Any:
        flags = [*(options.pop("args", None) or []), *own]
        return launch(self, **{"executable_path": executable, **options, "args": flags})

    kind.launch = with_options
    try:
        yield
    finally:
        kind.launch = launch


def _first_line(error: str) -> str:
    return re.sub(r"\s+", " ", error.partition("\nCall log")[0]).strip()[:_LONGEST_ERROR]
