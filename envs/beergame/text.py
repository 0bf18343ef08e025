"""Words of the beer game."""

from __future__ import annotations

from turngym.envs.beergame.chain import BACKLOG, HOLDING, LEAD, MOST_PAID, NAMES
from turngym.envs.inventory.chain import THOUSAND

CUSTOMERS = "customers"
PAYS_ALONE = "Only the retailer pays for its backlog"


def partners(stage: int) -> tuple[str, str]:
    """Return who orders from a stage, and who supplies it.

    >>> partners(0), partners(3)
    (('customers', 'the wholesaler'), ('the distributor', 'your production'))
    """
    below = f"the {NAMES[stage - 1]}" if stage else CUSTOMERS
    above = f"the {NAMES[stage + 1]}" if stage + 1 < len(NAMES) else "your production"
    return below, above


def instructions(stage: int, weeks: int, demand: str, largest: int, is_shared: bool) -> str:
    """Return the rules for a stage.

    Args:
        stage: Its number.
        weeks: Weeks of the game.
        demand: Sentence about customers.
        largest: Largest order.
        is_shared: Whether every stage pays for its backlog.
    """
    below, above = partners(stage)
    supply = (
        f"Your order reaches {above} in the next week, and what it ships arrives {LEAD} weeks after that"
        if stage + 1 < len(NAMES)
        else f"You order from {above}, which starts in the next week and always finishes, {LEAD} weeks after that"
    )
    owing = (
        f"a unit that it owes {BACKLOG / THOUSAND:g}"
        if is_shared
        else f"one that it owes customers {BACKLOG // THOUSAND}"
    )
    alone = "" if is_shared else f" {PAYS_ALONE}."
    return (
        f"Beer comes from a factory through a distributor and a wholesaler to a retailer, who sells it to customers. "
        f"Four players order for one of these stages each; you are the {NAMES[stage]}. You win or lose together: the "
        f"costs of all four in {weeks} weeks count, and the lower they are, the better. Nobody sees the others' "
        f"numbers.\nIn each week, first what is due arrives at each stage. Then the orders from it arrive: yours are "
        f"from {below}. It ships what is ordered and what it still owes, as far as its stock allows, and owes the "
        f"rest. At the end of the week a unit in stock costs a stage {HOLDING / THOUSAND:g}, {owing}, together at most "
        f"{MOST_PAID // THOUSAND}.{alone} Then all stages order at once. {supply}. {demand}\n"
        f"Answer with how many units you order, from 0 to {largest}, in brackets, such as [{largest * 2 // 5}]."
    )


def money(amount: int) -> str:
    """Return thousandths as an amount.

    >>> money(1500), money(1130000)
    ('1.5', '1130')
    """
    return f"{amount / THOUSAND:.10g}"
