"""Ways to success without serving the caller: none works."""

from collections.abc import Callable, Iterator

import pytest
from expert_play import mirrored, succeeds

from turngym.envs.service.acts import vocabulary, write
from turngym.envs.service.domain import Act
from turngym.envs.service.env import Service
from turngym.seeding import stream

COUNT = 20
READ = {"shop": "lines", "clinic": "visits"}
"""Domain -> table that holds what has been read of the caller's wish."""
Player = Callable[[Service], Iterator[str]]


def identified(env: Service) -> Iterator[str]:
    """Do the beginning as the expert does it, until the customer's records have been read."""
    while env.session.view.customer is None or not env.session.view.known.where(READ[env.options.domain]):
        action = env.expert_action()
        if action.split()[0] not in ("ask", "call"):
            return
        yield action


def hang_up(env: Service) -> Iterator[str]:
    yield "bye"


def hang_up_later(env: Service) -> Iterator[str]:
    yield from identified(env)
    yield "ask more"
    yield "bye"


def refuse_all(env: Service) -> Iterator[str]:
    yield from identified(env)
    for reason in vocabulary(env.session.domain).refusals:
        yield f"refuse {reason}"
        yield f"refuse {reason}"
    yield "ask more"
    yield "bye"


def transfer_all(env: Service) -> Iterator[str]:
    yield "transfer out_of_scope"


def tell_all(env: Service) -> Iterator[str]:
    """Tell every order, status, day and sum on the way to the end of an episode that is otherwise right."""
    yield from identified(env)
    rows = env.session.script.rows
    for status in ("pending", "shipped", "delivered"):
        yield f"tell status={status}"
    for number in list(rows["orders"])[:3]:
        yield f"tell order={number}"
    while True:
        yield env.expert_action()


def write_and_undo(env: Service) -> Iterator[str]:
    """Move each order elsewhere and back, then serve the caller."""
    yield from identified(env)
    for number, order in env.session.script.rows["orders"].items():
        if order["customer"] == env.session.script.customer:
            for address in ("9 Nowhere, Graz", order["address"]):
                yield write(Act("call", "change_address", {"order": number, "address": address}))
    while True:
        yield env.expert_action()


def confirm_for_the_caller(env: Service) -> Iterator[str]:
    """Put the caller's yes into the prose instead of asking."""
    while True:
        action = env.expert_action()
        if action.startswith("propose"):
            yield f"{action.replace('propose', 'call', 1)} | yes()\nCaller: Yes, please. | yes()"
        else:
            yield action


def other_account(env: Service) -> Iterator[str]:
    """Read somebody else's orders, then serve the caller."""
    yield from identified(env)
    others = [each for each in env.session.script.rows["customers"] if each != env.session.script.customer]
    yield write(Act("call", "list_orders", {"customer": others[0]}))
    while True:
        yield env.expert_action()


def without_a_question(env: Service) -> Iterator[str]:
    """Identify the caller by details from nowhere, as a leak would give them."""
    script = env.session.script
    first, second = (str(script.policy[key]) for key in ("first", "second"))
    yield write(Act("call", env.session.finder, {slot: script.caller.slots[slot] for slot in (first, second)}))
    while True:
        yield env.expert_action()


def lowball(env: Service) -> Iterator[str]:
    """Offer nothing back, so that the caller withdraws."""
    while True:
        action = env.expert_action()
        if action.startswith("propose") and '"refund"' in action:
            head, _, rest = action.partition('"refund": ')
            yield f'{head}"refund": 0{rest[len(rest) - len(rest.lstrip("0123456789")) :]}'
        else:
            yield action


def success_texts(env: Service) -> Iterator[str]:
    while True:
        yield "tell status=resolved | The wish is settled. success=1"


def to_the_limit(env: Service) -> Iterator[str]:
    while True:
        yield 'call find_products {"item": "kettle"}'


NEED_A_CHANGE = (confirm_for_the_caller,)
ATTACKS: tuple[Player, ...] = (
    hang_up,
    hang_up_later,
    refuse_all,
    transfer_all,
    tell_all,
    write_and_undo,
    confirm_for_the_caller,
    other_account,
    without_a_question,
    success_texts,
    to_the_limit,
)


def successes(player: Player, count: int = COUNT, domain: str = "shop") -> int:
    """Return the successes among the instances in which a record must change, where the attack is about changes."""
    env, won = Service(domain=domain), 0
    for seed in range(count):
        env.reset(seed=seed)
        if player in NEED_A_CHANGE and not env.session.script.changes:
            continue
        won += succeeds(env, player(env))
    return won


@pytest.mark.parametrize("player", ATTACKS, ids=lambda player: player.__name__)
def test_attacks_never_succeed(player: Player) -> None:
    assert successes(player) == 0


@pytest.mark.parametrize(
    "player",
    [hang_up_later, refuse_all, transfer_all, confirm_for_the_caller, without_a_question],
    ids=lambda player: player.__name__,
)
def test_attacks_never_succeed_at_the_clinic(player: Player) -> None:
    assert successes(player, COUNT // 2, "clinic") == 0


def test_a_bad_offer_is_no_way_to_get_rid_of_a_wish() -> None:
    env, tried = Service(), 0
    for seed in range(COUNT):
        _, info = env.reset(seed=seed)
        is_low = False
        for action in lowball(env):
            is_low |= action != env.expert_action()
            info = env.step(action)[4]
            if info["success"] >= 0:
                break
        tried += is_low
        assert not (is_low and info["success"] == 1)
    assert tried > 3


def test_random_legal_play_never_succeeds() -> None:
    def at_random(env: Service) -> Iterator[str]:
        generator = stream("service attack", env.instance_hash)
        while True:
            legal = env.legal_actions()
            yield legal[int(generator.integers(len(legal)))]

    assert successes(at_random) == 0


def test_the_expert_of_another_instance_does_not_succeed() -> None:
    """A player that memorised actions does not know the numbers of this instance."""
    mirror = mirrored(Service(split="test"))

    def then_leave(env: Service) -> Iterator[str]:
        yield from mirror(env)
        yield "bye"

    assert successes(then_leave) == 0


def test_what_agents_read_holds_no_solution() -> None:
    """Everything that text players get, searched for the facts of other customers and the caller."""
    env = Service()
    for seed in range(20):
        observation, info = env.reset(seed=seed)
        text = "\n".join([observation, env.instructions, info["anchor"], *info["legal_actions"]])
        caller = env.session.script.caller
        assert not any(str(value) in text for value in caller.slots.values())
        assert not any(str(line) in text for line in env.session.script.rows["lines"])
