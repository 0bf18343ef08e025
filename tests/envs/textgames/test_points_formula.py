"""Formulas and hands: values equal Python's own arithmetic, and the solver finds exactly what enumeration finds."""

import ast
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.textgames.ez_points.deals import card_value, shown_as, solvable_deals
from turngym.envs.textgames.ez_points.formula import START, Stack, evaluate, is_formula, next_tokens, read, tokenize
from turngym.envs.textgames.ez_points.solver import completion, factors, formulas, is_solvable, solution, splits

Trees = Iterator[tuple[str, Fraction]]


def by_python(text: str) -> Fraction | None:
    """Evaluate a formula through Python's parser."""

    def value(node: ast.expr) -> Fraction:
        if isinstance(node, ast.Constant):
            assert isinstance(node.value, int)
            return Fraction(node.value)
        assert isinstance(node, ast.BinOp)
        one, other = value(node.left), value(node.right)
        if isinstance(node.op, ast.Add):
            return one + other
        if isinstance(node.op, ast.Sub):
            return one - other
        return one * other if isinstance(node.op, ast.Mult) else one / other

    try:
        return value(ast.parse(text, mode="eval").body)
    except ZeroDivisionError:
        return None


def trees(numbers: tuple[int, ...], operators: str) -> Trees:
    """Yield every fully bracketed formula of numbers in this order, with its value."""
    if len(numbers) == 1:
        yield str(numbers[0]), Fraction(numbers[0])
    for cut in range(1, len(numbers)):
        rights = list(trees(numbers[cut:], operators))
        for left, one in trees(numbers[:cut], operators):
            for right, other in rights:
                for operator in operators:
                    if operator != "/" or other:
                        value = {"+": one + other, "-": one - other, "*": one * other}.get(operator)
                        yield f"({left}{operator}{right})", one / other if value is None else value


def every_value(hand: tuple[int, ...], operators: str) -> set[Fraction]:
    return {value for order in set(permutations(hand)) for _, value in trees(order, operators)}


formula_texts = st.recursive(
    st.integers(0, 13).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner, st.booleans()).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})" if parts[3] else f"{parts[0]}{parts[1]}{parts[2]}"
    ),
    max_leaves=7,
)


@settings(max_examples=300)
@given(formula_texts)
def test_values_equal_those_of_pythons_own_parser(text: str) -> None:
    tokens = tokenize(text)
    assert tokens is not None and is_formula(tokens)
    assert evaluate(tokens) == by_python(text)


PRECEDENCE_AND_ASSOCIATION: list[tuple[str, Fraction | int]] = [
    ("2+3*4", 14),
    ("10-4-3", 3),
    ("24/2/3", 4),
    ("24/(2*3)", 4),
    ("24/2*3", 36),
    ("2*(3+4)*5", 70),
    ("8/(3-8/3)", 24),
    ("1-2*3/4", Fraction(-1, 2)),
    ("((7))", 7),
    ("0/5", 0),
]


def test_precedence_and_association() -> None:
    for text, value in PRECEDENCE_AND_ASSOCIATION:
        assert evaluate(tokenize(text) or []) == value


@pytest.mark.parametrize("text", ["1/0", "5/(2-2)", "0*(1/0)", "(1/(1-1))+3"])
def test_a_division_by_zero_has_no_value(text: str) -> None:
    assert evaluate(tokenize(text) or []) is None


def test_text_that_is_no_formula() -> None:
    for text in ["", "+", "1+", "+1", "1 2", "()", "(1", "1)", ")1(", "1(2)", "(1)(2)", "1+*2", "-1"]:
        tokens = tokenize(text)
        assert tokens is not None and not is_formula(tokens)
        with pytest.raises(ValueError, match="no formula"):
            evaluate(tokens)


def test_text_with_other_signs_has_no_tokens() -> None:
    for text in ["x", "1.5", "2**x", "1;2", "4 + 8 = 12", "1_0 e", "1234", "٣", "2^3", "1+\x00"]:
        tokens = tokenize(text)
        assert tokens is None or not is_formula(tokens)


def test_typographic_signs_are_read() -> None:
    assert tokenize(" 9 × ( 8÷4 ) − 6 ") == ["9", "*", "(", "8", "/", "4", ")", "-", "6"]


def test_splits_are_all_ways_to_share_a_hand() -> None:
    for hand in [(2, 3), (2, 2), (1, 2, 3), (2, 2, 3, 3), (1, 1, 1, 1)]:
        found = set()
        for order in permutations(hand):
            for cut in range(1, len(hand)):
                found.add((tuple(sorted(order[:cut])), tuple(sorted(order[cut:]))))
        assert set(splits(hand)) == found and len(splits(hand)) == len(found)


@pytest.mark.parametrize("operators", ["+-*/", "+*", "-", "*/", "+-"])
def test_tables_hold_exactly_the_values_that_enumeration_finds(operators: str) -> None:
    for hand in [(3, 4), (6, 6), (2, 3, 7), (4, 4, 9), (1, 1, 1), (5, 5, 10)]:
        assert set(formulas(hand, operators)) == every_value(hand, operators), hand
        assert set(factors(hand, operators)) == set(formulas(hand, operators))


def test_tables_count_the_fewest_brackets() -> None:
    """Oracle: three numbers have three shapes of formula, with no bracket or with one."""
    hand = (2, 3, 7)
    fewest: dict[Fraction, int] = {}
    for order in permutations(hand):
        for one, other in product("+-*/", repeat=2):
            a, b, c = order
            shapes = (f"{a}{one}{b}{other}{c}", f"({a}{one}{b}){other}{c}", f"{a}{one}({b}{other}{c})")
            for text in shapes:
                value = by_python(text)
                if value is not None:
                    fewest[value] = min(fewest.get(value, 9), text.count("("))
    assert formulas(hand, "+-*/") == fewest


@pytest.mark.parametrize(("target", "operators"), [(24, "+-*/"), (24, "+*"), (1, "+-*/"), (7, "-/")])
def test_solvable_hands_are_those_of_enumeration(target: int, operators: str) -> None:
    hands = list(combinations_with_replacement(range(1, 11), 4))[:: 41 if operators == "+-*/" else 53]
    for hand in [*hands, (3, 3, 8, 8), (1, 1, 1, 1), (1, 5, 5, 5)]:
        values = every_value(hand, operators)
        found = solution(hand, target, operators)
        assert is_solvable(hand, target, operators) == (target in values) == (found is not None), hand
        if found is not None:
            assert evaluate(found) == target and set("+-*/") & set(found) <= set(operators)
            assert tuple(sorted([int(token) for token in found if token.isdigit()])) == hand


def test_how_many_hands_make_twenty_four() -> None:
    """Public counts: 1,362 of the 1,820 hands of values 1 to 13, and 566 of the 715 of values 1 to 10."""
    for highest, count in ((13, 1362), (10, 566)):
        hands = combinations_with_replacement(range(1, highest + 1), 4)
        assert sum([is_solvable(hand, 24, "+-*/") for hand in hands]) == count


def enumerated(prefix: list[str], left: list[int], opens: int, operators: str, depth: int) -> Iterator[list[str]]:
    """Yield every formula that goes on from a prefix, by the tokens that are legal."""
    has_value = bool(prefix) and (prefix[-1].isdigit() or prefix[-1] == ")")
    for token in next_tokens(tuple(sorted(left)), operators, depth, opens, has_value):
        if token == "=":
            yield prefix
        elif token == "(":
            yield from enumerated([*prefix, token], left, opens - 1, operators, depth + 1)
        elif token == ")":
            yield from enumerated([*prefix, token], left, opens, operators, depth - 1)
        elif token.isdigit():
            rest = list(left)
            rest.remove(int(token))
            yield from enumerated([*prefix, token], rest, opens, operators, depth)
        else:
            yield from enumerated([*prefix, token], left, opens, operators, depth)


def stack_after(tokens: list[str]) -> Stack | None:
    stack: Stack | None = START
    for token in tokens:
        stack = read(stack, token) if stack is not None else None
    return stack


@pytest.mark.parametrize("prefix", [[], ["("], ["2", "-"], ["(", "2", "*"], ["(", "2"], ["6", "/", "("], ["(", "("]])
def test_a_completion_is_found_exactly_where_one_exists(prefix: list[str]) -> None:
    """For three cards: every formula of the legal tokens, against the search, for every value."""
    hand, operators = [2, 3, 6], "+-*/"
    left = list(hand)
    for token in prefix:
        if token.isdigit():
            left.remove(int(token))
    opens, depth = 2 - prefix.count("("), prefix.count("(")
    reached = {evaluate(tokens) for tokens in enumerated(prefix, left, opens, operators, depth)} - {None}
    stack = stack_after(prefix)
    assert stack is not None and len(reached) > 5
    for target in range(-10, 40):
        tail = completion(stack, tuple(left), opens, Fraction(target), operators)
        assert (tail is not None) == (target in reached), target
        if tail is not None:
            assert evaluate([*prefix, *tail]) == target
            assert [*prefix, *tail].count("(") <= 2


def test_any_operand_will_do_where_the_term_is_zero() -> None:
    """After 12 + 0 * and after 12 + 0 / the last number does not matter."""
    for operator in "*/":
        stack = stack_after(["12", "+", "0", operator])
        assert stack is not None
        assert completion(stack, (7,), 0, Fraction(12), "+*/") == ("7",)
        assert completion(stack, (7,), 0, Fraction(13), "+*/") is None


def test_a_prefix_that_divides_by_zero_has_no_future() -> None:
    assert stack_after(["5", "/", "(", "2", "-", "2", ")"]) is None


@settings(max_examples=60)
@given(st.data())
def test_legal_tokens_always_lead_to_a_formula(data: st.DataObject) -> None:
    left = data.draw(st.lists(st.integers(1, 10), min_size=2, max_size=4).map(sorted))
    opens, depth, tokens = len(left) - 1, 0, list[str]()
    longest = 4 * len(left) - 2
    while True:
        has_value = bool(tokens) and (tokens[-1].isdigit() or tokens[-1] == ")")
        legal = next_tokens(tuple(left), "+-*/", depth, opens, has_value)
        assert legal, tokens
        token = data.draw(st.sampled_from(legal))
        if token == "=":
            break
        tokens.append(token)
        opens, depth = opens - (token == "("), depth + (token == "(") - (token == ")")
        if token.isdigit():
            left.remove(int(token))
    assert is_formula(tokens) and not left and len(tokens) + 1 <= longest


HANDS = st.lists(st.integers(1, 10), min_size=3, max_size=3).map(sorted)


def solved(hand: list[int]) -> st.SearchStrategy[tuple[list[int], int, tuple[str, ...]]]:
    """Return the hand with a target that it reaches, and the solution."""
    found = [(target, solution(tuple(hand), target, "+-*/")) for target in range(1, 41)]
    return st.sampled_from([(hand, target, tuple(tokens)) for target, tokens in found if tokens is not None])


@settings(max_examples=40)
@given(HANDS.flatmap(solved))
def test_a_solution_is_a_completion_of_each_of_its_prefixes(case: tuple[list[int], int, tuple[str, ...]]) -> None:
    hand, target, tokens = case
    for cut in range(len(tokens)):
        done = list(tokens[:cut])
        left = list(hand)
        for token in done:
            if token.isdigit():
                left.remove(int(token))
        stack = stack_after(done)
        assert stack is not None
        tail = completion(stack, tuple(left), 2 - done.count("("), Fraction(target), "+-*/")
        assert tail is not None and evaluate([*done, *tail]) == target


def test_deals_of_few_cards_are_those_that_enumeration_solves() -> None:
    for faces in ("ten", "rank"):
        found = set(solvable_deals(2, 12, "+*", faces))
        for ranks in product(range(1, 14), repeat=2):
            one, other = (card_value(rank, faces) for rank in ranks)
            assert (ranks in found) == (12 in (one + other, one * other))


def test_a_hand_is_always_shown_the_same_and_counts_what_it_is() -> None:
    for hand in combinations_with_replacement((1, 4, 10), 4):
        ranks = shown_as(hand, "ten")
        assert tuple(sorted([card_value(rank, "ten") for rank in ranks])) == hand
        shown_as.cache_clear()
        assert shown_as(hand, "ten") == ranks
    pictures = {rank for hand in combinations_with_replacement(range(1, 11), 4) for rank in shown_as(hand, "ten")}
    assert pictures == set(range(1, 14)), "every card appears in some hand"
