"""Global generators lent to foreign code: the caller's stay untouched, and nobody disturbs anybody."""

import random
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import mtrand

from turngym.envs.adapters.global_random import GlobalRandom

Drawn = tuple[float, float, float, float]


def draw() -> Drawn:
    """Draw from both global generators, normal numbers too, which come in pairs with one held back."""
    return random.random(), random.gauss(0, 1), float(np.random.rand()), float(np.random.normal())


def caller() -> str:
    with np.printoptions(threshold=sys.maxsize):
        return repr((random.getstate(), np.random.get_state()))


def lent(state: GlobalRandom, times: int = 1) -> list[Drawn]:
    found = []
    for _ in range(times):
        with state.lent():
            found.append(draw())
    return found


@pytest.mark.parametrize("pairs_begun", [0, 1])
def test_the_caller_finds_its_generators_as_they_were(pairs_begun: int) -> None:
    """With one normal number drawn, NumPy holds back another: it must come back too."""
    random.seed(3)
    np.random.seed(3)
    for _ in range(pairs_begun):
        draw()
    before = caller()
    expected = draw()
    random.seed(3)
    np.random.seed(3)
    for _ in range(pairs_begun):
        draw()
    assert caller() == before
    lent(GlobalRandom(9), 5)
    assert caller() == before
    assert draw() == expected


def test_seeding_inside_changes_nothing_outside() -> None:
    before = caller()
    state = GlobalRandom(1)
    with state.lent():
        random.seed(0)
        np.random.seed(0)
        first = draw()
    assert caller() == before
    with state.lent():
        random.seed(0)
        np.random.seed(0)
        assert draw() == first


def test_an_error_inside_gives_the_generators_back() -> None:
    state, before = GlobalRandom(2), caller()
    with pytest.raises(RuntimeError, match="inside"), state.lent():
        draw()
        raise RuntimeError("inside")
    assert caller() == before
    twin = GlobalRandom(2)
    assert lent(state)[0] == lent(twin, 2)[1], "what was drawn before the error counts"


def test_equal_seeds_give_equal_draws_and_other_seeds_others() -> None:
    assert lent(GlobalRandom(5), 4) == lent(GlobalRandom(5), 4)
    assert lent(GlobalRandom(5), 4) != lent(GlobalRandom(6), 4)
    state = GlobalRandom(5)
    first = lent(state, 3)
    state.seed(5)
    assert lent(state, 3) == first


@given(order=st.lists(st.integers(0, 2), max_size=25))
@settings(max_examples=40)
def test_interleaved_holders_draw_what_each_draws_alone(order: list[int]) -> None:
    states = [GlobalRandom(seed) for seed in range(3)]
    mixed: list[list[Drawn]] = [[], [], []]
    for who in order:
        mixed[who] += lent(states[who])
    assert mixed == [lent(GlobalRandom(seed), order.count(seed)) for seed in range(3)]


def test_holders_may_nest() -> None:
    outer, inner = GlobalRandom(1), GlobalRandom(2)
    with outer.lent():
        first = draw()
        within = lent(inner)
        second = draw()
    assert [first, second] == lent(GlobalRandom(1), 2)
    assert within == lent(GlobalRandom(2))


def together(work: Callable[[int], None], count: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_do_not_disturb_each_other() -> None:
    """A short switch interval makes a missing lock show itself."""
    found: dict[int, list[Drawn]] = {}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    before = caller()

    def work(number: int) -> None:
        state = GlobalRandom(number)
        drawn: list[Drawn] = []
        for _ in range(20):
            with state.lent():
                drawn.append(draw())
        found[number] = drawn

    try:
        together(work, 6)
    finally:
        sys.setswitchinterval(interval)
    assert found == {number: lent(GlobalRandom(number), 20) for number in range(6)}
    assert caller() == before


def test_without_the_lock_threads_would_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative oracle for the test above: the same work, one thread waiting in the midst of its turn."""

    class NoLock:
        def __enter__(self) -> None:
            return

        def __exit__(self, *_: object) -> None:
            return

    monkeypatch.setattr("turngym.envs.adapters.global_random._LOCK", NoLock())
    entered, drawn = threading.Event(), threading.Event()
    seen: list[Drawn] = []
    before = random.getstate()

    def first() -> None:
        with GlobalRandom(1).lent():
            entered.set()
            drawn.wait(120)
            seen.append(draw())

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait(120)
    draw()  # the caller's own draw, which now comes from the other's state
    drawn.set()
    thread.join()
    assert seen != lent(GlobalRandom(1))
    random.setstate(before)


def test_another_bit_generator_of_the_caller_is_kept() -> None:
    ours = mtrand.get_bit_generator()
    other = np.random.PCG64(4)
    mtrand.set_bit_generator(other)
    try:
        assert lent(GlobalRandom(3)) == lent(GlobalRandom(3))
        assert mtrand.get_bit_generator() is other
    finally:
        mtrand.set_bit_generator(ours)
