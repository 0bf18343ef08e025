"""Small programs on numbers, in which faults are planted. Each is shown to agents as it stands here."""

from __future__ import annotations


def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor of two positive numbers."""
    while b != 0:
        a, b = b, a % b
    return a


def lcm(a: int, b: int) -> int:
    """Return the least common multiple of two positive numbers."""
    step = max(a, b)
    found = step
    while found % a != 0 or found % b != 0:
        found += step
    return found


def is_prime(n: int) -> bool:
    """Return whether a number is prime."""
    if n < 2:
        return False
    divisor = 2
    while divisor * divisor <= n:
        if n % divisor == 0:
            return False
        divisor += 1
    return True


def digit_sum(n: int) -> int:
    """Return the sum of the decimal digits of a number."""
    total = 0
    while n > 0:
        total += n % 10
        n //= 10
    return total


def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number; the first two, of 0 and 1, are 0 and 1."""
    before, now = 0, 1
    for _ in range(n):
        before, now = now, before + now
    return before


def factorial(n: int) -> int:
    """Return the product of all whole numbers from 1 to n."""
    if n <= 1:
        return 1
    return n * factorial(n - 1)


def power_mod(base: int, exponent: int, modulus: int) -> int:
    """Return the remainder of base to the power of exponent, divided by modulus."""
    result = 1 % modulus
    base = base % modulus
    while exponent > 0:
        if exponent % 2 == 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent = exponent // 2
    return result


def collatz_steps(n: int) -> int:
    """Return how many steps lead from n to 1: an even number is halved, an odd one tripled and 1 added."""
    steps = 0
    while n != 1 and steps < 1000:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def to_binary(n: int) -> str:
    """Return a number in binary digits."""
    if n == 0:
        return "0"
    digits = ""
    while n > 0:
        digits = str(n % 2) + digits
        n = n // 2
    return digits


def count_divisors(n: int) -> int:
    """Return how many positive divisors a positive number has."""
    count = 0
    divisor = 1
    while divisor * divisor <= n:
        if n % divisor == 0:
            count += 1
            if divisor != n // divisor:
                count += 1
        divisor += 1
    return count


def whole_root(n: int) -> int:
    """Return the greatest whole number whose square is at most n."""
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle * middle <= n:
            low = middle
        else:
            high = middle
    return low


def prime_factors(n: int) -> list[int]:
    """Return the prime factors of a positive number, smallest first."""
    factors = []
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    if n > 1:
        factors.append(n)
    return factors


def binomial(n: int, k: int) -> int:
    """Return in how many ways k things can be chosen from n."""
    if k > n:
        return 0
    result = 1
    for i in range(1, k + 1):
        result = result * (n - k + i) // i
    return result


def digits_reversed(n: int) -> int:
    """Return the number with the decimal digits of n in reverse order."""
    result = 0
    while n > 0:
        result = result * 10 + n % 10
        n = n // 10
    return result


def ways_to_climb(steps: int, longest: int) -> int:
    """Return in how many ways a stair can be climbed with strides of 1 to longest steps."""
    ways = [1]
    for step in range(1, steps + 1):
        total = 0
        for stride in range(1, longest + 1):
            if stride <= step:
                total += ways[step - stride]
        ways.append(total)
    return ways[steps]


def hamming_distance(a: int, b: int) -> int:
    """Return in how many binary digits two numbers differ."""
    difference = a ^ b
    count = 0
    while difference > 0:
        count += difference & 1
        difference >>= 1
    return count


PROGRAMS = (
    (gcd, ("positive", "positive")),
    (lcm, ("positive", "positive")),
    (is_prime, ("whole",)),
    (digit_sum, ("whole",)),
    (fibonacci, ("small",)),
    (factorial, ("small",)),
    (power_mod, ("whole", "whole", "positive")),
    (collatz_steps, ("positive",)),
    (to_binary, ("whole",)),
    (count_divisors, ("positive",)),
    (whole_root, ("whole",)),
    (prime_factors, ("positive",)),
    (binomial, ("small", "small")),
    (digits_reversed, ("whole",)),
    (ways_to_climb, ("small", "small")),
    (hamming_distance, ("whole", "whole")),
)
"""Each with the kinds of its arguments."""
