"""Information sets as inputs of a network."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from turngym.envs.multiagent.equilibria import GameTree
from turngym.envs.multiagent.equilibria.tree import Floats, Ints
from turngym.errors import ConfigError


class Features(NamedTuple):
    """Inputs and legal outputs of a network for all information sets of a game.

    Args:
        inputs: [sets, features] 1 for each word of the anchor at its place, else 0.
        legal: [sets, actions] whether the action is legal.
        entries: [sets, actions] the action's index in arrays of policies; -1 where it is not legal.
        columns: For each set: the columns of its actions, in their order.
        actions: Names of the actions of all information sets.
    """

    inputs: Floats
    legal: Floats
    entries: Ints
    columns: tuple[list[int], ...]
    actions: tuple[str, ...]


def game_features(tree: GameTree) -> Features:
    """Return the features of a game's information sets, from the words of their names.

    Raises:
        ConfigError: Two names of a seat differ in spaces and line breaks alone, so that a network cannot tell their
            sets apart.

    >>> from turngym.envs.multiagent import make_game
    >>> from turngym.envs.multiagent.equilibria import game_tree
    >>> found = game_features(game_tree(make_game("turngym/KuhnPoker-v0")))
    >>> found.inputs.shape, found.actions
    ((12, 8), ('bet', 'call', 'check', 'fold'))
    """
    words = [[f"{each.seat}", *enumerate(each.name.split())] for each in tree.sets]
    first: dict[tuple[Any, ...], str] = {}
    for each, found in zip(tree.sets, words, strict=True):
        if (other := first.setdefault(tuple(found), each.name)) != each.name:
            raise ConfigError(
                f"Networks see only the words of anchors, the same in {other!r:.200} and {each.name!r:.200}: let the "
                "anchors of the game differ in a word, or take a solver with tables, such as cfr+."
            )
    known = {word: index for index, word in enumerate(sorted({word for each in words for word in each}, key=str))}
    actions = tuple(sorted({action for each in tree.sets for action in each.actions}))
    inputs = np.zeros((len(words), len(known)))
    entries: Ints = np.full((len(words), len(actions)), -1)
    columns = tuple([[actions.index(action) for action in each.actions] for each in tree.sets])
    for row, (each, found) in enumerate(zip(tree.sets, words, strict=True)):
        inputs[row, [known[word] for word in found]] = 1.0
        entries[row, columns[row]] = each.start + np.arange(len(each.actions))
    return Features(inputs, (entries >= 0).astype(float), entries, columns, actions)
