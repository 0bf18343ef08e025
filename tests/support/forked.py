"""Runs a function in a copy of the test's process, which needs no second import of torch."""

import multiprocessing
import warnings
from collections.abc import Callable


def run_forked(function: Callable[[], object], timeout: float = 900.0) -> int:
    """Run a function in a forked process.

    Args:
        function: What to run; it may end its process by a signal or ``sys.exit``.
        timeout: Seconds after which a process that hangs is killed.

    Returns:
        The exit status; minus the number of a signal.
    """
    process = multiprocessing.get_context("fork").Process(target=function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns where other threads live
        process.start()
    process.join(timeout)
    if process.exitcode is None:
        process.kill()
        process.join()
    assert process.exitcode is not None
    return process.exitcode
