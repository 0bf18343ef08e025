"""Small programs on lists and texts, in which faults are planted. Each is shown to agents as it stands here."""

from __future__ import annotations


def binary_search(numbers: list[int], target: int) -> bool:
    """Return whether a sorted list holds a number."""
    low, high = 0, len(numbers) - 1
    while low <= high:
        middle = (low + high) // 2
        if numbers[middle] == target:
            return True
        if numbers[middle] < target:
            low = middle + 1
        else:
            high = middle - 1
    return False


def insertion_sort(numbers: list[int]) -> list[int]:
    """Return the numbers in ascending order."""
    result = list(numbers)
    for i in range(1, len(result)):
        j = i
        while j > 0 and result[j - 1] > result[j]:
            result[j - 1], result[j] = result[j], result[j - 1]
            j -= 1
    return result


def merge(first: list[int], second: list[int]) -> list[int]:
    """Return two sorted lists as one sorted list."""
    result = []
    i, j = 0, 0
    while i < len(first) and j < len(second):
        if first[i] <= second[j]:
            result.append(first[i])
            i += 1
        else:
            result.append(second[j])
            j += 1
    return result + first[i:] + second[j:]


def largest_sum(numbers: list[int]) -> int:
    """Return the largest sum of neighbouring numbers, at least one of them."""
    best = now = numbers[0]
    for number in numbers[1:]:
        now = max(number, now + number)
        best = max(best, now)
    return best


def second_largest(numbers: list[int]) -> int | None:
    """Return the second largest of the different numbers, None where there is none."""
    best, second = None, None
    for number in numbers:
        if best is None or number > best:
            best, second = number, best
        elif number != best and (second is None or number > second):
            second = number
    return second


def rotate(numbers: list[int], places: int) -> list[int]:
    """Return the list with its end moved to its beginning, by so many places."""
    if not numbers:
        return []
    places = places % len(numbers)
    return numbers[len(numbers) - places :] + numbers[: len(numbers) - places]


def running_sums(numbers: list[int]) -> list[int]:
    """Return the sums of the first number, the first two, and so on."""
    result = []
    total = 0
    for number in numbers:
        total += number
        result.append(total)
    return result


def count_inversions(numbers: list[int]) -> int:
    """Return how many pairs stand in the wrong order: the greater one first."""
    count = 0
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] > numbers[j]:
                count += 1
    return count


def longest_rise(numbers: list[int]) -> int:
    """Return the length of the longest run of neighbours in which each is greater than the one before."""
    best = 0
    length = 0
    for i in range(len(numbers)):
        if i > 0 and numbers[i] > numbers[i - 1]:
            length += 1
        else:
            length = 1
        best = max(best, length)
    return best


def without_repeats(numbers: list[int]) -> list[int]:
    """Return the list with every number where it stands first, and nowhere else."""
    seen = set()
    result = []
    for number in numbers:
        if number not in seen:
            seen.add(number)
            result.append(number)
    return result


def pairs_with_sum(numbers: list[int], target: int) -> int:
    """Return how many pairs of places hold numbers with that sum."""
    count = 0
    seen: dict[int, int] = {}
    for number in numbers:
        count += seen.get(target - number, 0)
        seen[number] = seen.get(number, 0) + 1
    return count


def chunks(numbers: list[int], size: int) -> list[list[int]]:
    """Return the list cut into pieces of that size; the last may be shorter."""
    result = []
    start = 0
    while start < len(numbers):
        result.append(numbers[start : start + size])
        start += size
    return result


def is_palindrome(text: str) -> bool:
    """Return whether a text reads the same backwards; spaces and capitals do not count."""
    letters = [letter.lower() for letter in text if letter != " "]
    left, right = 0, len(letters) - 1
    while left < right:
        if letters[left] != letters[right]:
            return False
        left += 1
        right -= 1
    return True


def run_lengths(text: str) -> list[list[object]]:
    """Return the runs of equal letters as pairs of letter and length."""
    runs: list[list[object]] = []
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or text[place] != text[start]:
            if start < len(text):
                runs.append([text[start], place - start])
            start = place
    return runs


def are_balanced(text: str) -> bool:
    """Return whether every bracket has its partner."""
    depth = 0
    for letter in text:
        if letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth < 0:
                return False
    return depth == 0


def count_words(text: str) -> int:
    """Return how many words a text has; spaces stand between them."""
    count = 0
    is_inside = False
    for letter in text:
        if letter == " ":
            is_inside = False
        elif not is_inside:
            is_inside = True
            count += 1
    return count


def edit_distance(first: str, second: str) -> int:
    """Return how many letters must be put in, left out or replaced to make one text of the other."""
    row = list(range(len(second) + 1))
    for i in range(1, len(first) + 1):
        last, row[0] = row[0], i
        for j in range(1, len(second) + 1):
            cost = 0 if first[i - 1] == second[j - 1] else 1
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + cost)
    return row[len(second)]


def caesar(text: str, places: int) -> str:
    """Return the text with every small letter moved on by so many places in the alphabet, from z on to a."""
    result = ""
    for letter in text:
        if "a" <= letter <= "z":
            result += chr((ord(letter) - ord("a") + places) % 26 + ord("a"))
        else:
            result += letter
    return result


def transpose(grid: list[list[int]]) -> list[list[int]]:
    """Return the grid with rows and columns exchanged."""
    result = []
    for column in range(len(grid[0])):
        result.append([grid[row][column] for row in range(len(grid))])
    return result


def cheapest_path(grid: list[list[int]]) -> int:
    """Return the smallest sum on a way from the top left to the bottom right, by steps to the right or down."""
    costs: list[list[int]] = []
    for i, row in enumerate(grid):
        costs.append([])
        for j, cost in enumerate(row):
            if i > 0 and j > 0:
                cost += min(costs[i - 1][j], costs[i][j - 1])
            elif i > 0:
                cost += costs[i - 1][j]
            elif j > 0:
                cost += costs[i][j - 1]
            costs[i].append(cost)
    return costs[-1][-1]


def saddle_points(grid: list[list[int]]) -> int:
    """Return how many places are the greatest of their row and the smallest of their column."""
    count = 0
    for row in grid:
        for j in range(len(row)):
            column = [other[j] for other in grid]
            if row[j] == max(row) and row[j] == min(column):
                count += 1
    return count


PROGRAMS = (
    (binary_search, ("sorted_numbers", "whole")),
    (insertion_sort, ("numbers",)),
    (merge, ("sorted_numbers", "sorted_numbers")),
    (largest_sum, ("some_numbers",)),
    (second_largest, ("numbers",)),
    (rotate, ("numbers", "whole")),
    (running_sums, ("numbers",)),
    (count_inversions, ("numbers",)),
    (longest_rise, ("numbers",)),
    (without_repeats, ("numbers",)),
    (pairs_with_sum, ("numbers", "small")),
    (chunks, ("numbers", "small")),
    (is_palindrome, ("word",)),
    (run_lengths, ("word",)),
    (are_balanced, ("brackets",)),
    (count_words, ("word",)),
    (edit_distance, ("word", "word")),
    (caesar, ("word", "whole")),
    (transpose, ("grid",)),
    (cheapest_path, ("grid",)),
    (saddle_points, ("grid",)),
)
"""Each with the kinds of its arguments."""
