"""Java processes shared by environments: started lazily, capped in memory, reused, always cleaned up."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import shutil
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from turngym.envs.vector.engine_pool import EnginePool
from turngym.errors import ConfigError, MissingExtra, TurngymError
from turngym.system.processes import own_memory_mib

T = TypeVar("T")
HEAP_MEGABYTES = 128
_SEATS = 8
SEATS_VARIABLE = "TURNGYM_ENVS_PER_JAVA"
_CALL_TIMEOUT_SECONDS = 120.0
_PATIENT_TIMEOUT_SECONDS = 1200.0
START_SECONDS = 120.0
HANG_SECONDS = 60.0
_OPTIONS = (
    "-XX:+UseSerialGC",  # one collector thread: many environments share a machine
    "-XX:TieredStopAtLevel=1",  # the quick compiler: twice the speed of the default in runs of a few minutes
    "-XX:-UsePerfData",  # no file in /tmp that a killed process would leave behind
    "-Xshare:auto",
    "-XX:+ExitOnOutOfMemoryError",  # a full heap ends the process, which is noticed; half a process would not be
)


class JavaGone(TurngymError, RuntimeError):
    """The Java process of an environment has ended or does not answer."""


class JavaFailed(TurngymError, RuntimeError):
    """A call into Java raised an exception there; the process continues."""


def find_java(feature: str) -> str:
    """Return the path of the ``java`` program: from JAVA_HOME, else from the PATH.

    Args:
        feature: Component that needs Java, for the error message.

    Raises:
        MissingExtra: There is none.
    """
    home = os.environ.get("JAVA_HOME", "")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise MissingExtra(
            f"{feature} needs a Java runtime, and there is no `java` in JAVA_HOME or on the PATH: "
            "install one, for example the Debian package default-jre-headless."
        )
    return found


class JavaProcess:
    """A Java process that serves objects over py4j, bound to loopback and guarded by a token.

    The process ends with ``close``, with the garbage collection of this object, at interpreter exit, and (since its
    standard input closes) with the death of this process by any cause.

    Args:
        feature: Component that needs Java, for error messages.
        jar: The class archive; its folder becomes the working directory.
        heap_megabytes: Upper limit of Java's heap.
        options: Further options of the ``java`` program.

    Raises:
        MissingExtra: There is no Java runtime.
        JavaGone: The process ended while it started, or was not ready in two minutes.
    """

    def __init__(
        self, feature: str, jar: Path, heap_megabytes: int = HEAP_MEGABYTES, options: tuple[str, ...] = ()
    ) -> None:
        from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path

        self.feature = feature
        self.lock = threading.RLock()
        """Lock for objects that share state in the process."""
        self.shared: dict[str, Any] = {}
        """Shared data, for the holder of the lock."""
        command = [find_java(feature), f"-Xmx{heap_megabytes}m", *_OPTIONS, *options]
        command += ["-classpath", os.pathsep.join((find_jar_path(), str(jar)))]
        command += ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=jar.parent,
            start_new_session=True,  # an interrupt from the terminal is for the run, which closes us in good order
        )
        end = weakref.finalize(self, _end, self._process, [], os.getpid())
        assert self._process.stdout is not None
        impatience = threading.Timer(START_SECONDS, self._process.kill)  # which ends its output, too
        impatience.daemon = True
        impatience.start()
        try:
            port, token = (self._process.stdout.readline().decode().strip() for _ in range(2))
        finally:  # an interrupt, too: nothing waits for the timer
            impatience.cancel()
        if not port.isdigit() or not token:
            end()
            raise JavaGone(f"{feature}: Java ended while it started (exit status {self._process.returncode}).")
        gateways = [
            JavaGateway(
                gateway_parameters=GatewayParameters(
                    port=int(port),
                    auth_token=token,
                    read_timeout=seconds,
                    enable_memory_management=False,  # else the garbage collector calls Java, which may be gone by then
                )
            )
            for seconds in (_CALL_TIMEOUT_SECONDS, _PATIENT_TIMEOUT_SECONDS)
        ]
        for gateway in gateways:
            client = gateway._gateway_client
            client._create_connection = functools.partial(_connect, client)
        end.detach()
        self._end = weakref.finalize(self, _end, self._process, gateways, os.getpid())
        self._gateways = gateways
        self._began: dict[object, float] = {}
        # Java's output is discarded, so that no pipe has to be drained.
        self.run(lambda java: java.jvm.java.lang.System.setOut(java.jvm.java.io.PrintStream(os.devnull)))
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process runs and answers: no call that should be short has been waiting for a minute."""
        oldest = min(self._began.copy().values(), default=math.inf)
        return self._end.alive and self._process.poll() is None and time.monotonic() - oldest < HANG_SECONDS

    def memory_mib(self) -> float:
        """Return the memory that the process uses."""
        return own_memory_mib(self.pid)

    def run(self, function: Callable[[Any], T], *, is_long: bool = False) -> T:
        """Return ``function(java)``, where ``java`` is py4j's gateway.

        Java keeps every object that it hands out until ``java.detach(it)``: the function lets go of what it asked for.

        Args:
            function: Action.
            is_long: Whether a call in there may take more than two minutes.

        Raises:
            JavaFailed: A method raised an exception; the message is the exception's.
            JavaGone: The process has ended, or did not answer in time; it is closed.
        """
        from py4j.protocol import Py4JError, Py4JJavaError

        if not self.is_alive():
            raise self._gone()
        call = object()
        if not is_long:
            self._began[call] = time.monotonic()
        try:
            return function(self._gateways[is_long])
        except Py4JJavaError as error:
            message = str(error.java_exception.getMessage())
            self._gateways[0].detach(error.java_exception)
            raise JavaFailed(message) from None
        except (Py4JError, OSError) as error:
            raise self._gone() from error
        finally:
            self._began.pop(call, None)

    def _gone(self) -> JavaGone:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)  # a socket breaks a moment before its process is gone
        status = self._process.poll()
        what = "does not answer" if status is None else f"has ended with exit status {status}"
        self.close()
        return JavaGone(f"the Java process of {self.feature} {what}: the episode is lost; reset() starts a new one.")

    def close(self) -> None:
        """End the process and wait for it; doing it twice is harmless."""
        self._end()


class JavaObject:
    """An object that a Java process of a pool serves, as one of several there.

    Args:
        pool: The pool.
        entry: Dotted name of the class to construct.
        run: Factory, for classes that must take turns; by default :meth:`JavaProcess.run`.

    Raises:
        MissingExtra: There is no Java runtime.
        JavaGone: The process ended while it started.
    """

    def __init__(
        self,
        pool: EnginePool[JavaProcess],
        entry: str,
        run: Callable[[JavaProcess, Callable[[Any], Any]], Any] = JavaProcess.run,
    ) -> None:
        self._lease = pool.lease()
        self.process = self._lease.engine
        """The process that it lives in."""
        try:
            self.entry: Any = run(self.process, lambda java: functools.reduce(getattr, entry.split("."), java.jvm)())
            """The object as py4j shows it; ask it within :meth:`JavaProcess.run`."""
        except BaseException:
            self._lease.release()
            raise

    def is_alive(self) -> bool:
        """Return whether its process runs."""
        return self.process.is_alive()

    def call(self, method: str, *arguments: str | int | bool) -> Any:
        """Call a method; return its answer, a Java list of texts or of numbers as a tuple.

        Raises:
            JavaFailed: The method raised an exception.
            JavaGone: The process has ended, or did not answer in time.
        """
        return self.process.run(lambda java: read(java, getattr(self.entry, method)(*arguments)))

    def close(self) -> None:
        """Release the object and its place in the process."""
        with contextlib.suppress(JavaGone):
            if self.is_alive():
                self.process.run(lambda java: java.detach(self.entry))
        self._lease.release()


def read(java: Any, answer: Any) -> Any:
    """Return what Java answered; a list as a tuple, in one piece instead of item by item over the wire."""
    from py4j.java_collections import JavaList

    if not isinstance(answer, JavaList):
        return answer
    if answer.isEmpty() or not isinstance(answer.get(0), str):
        items = tuple(json.loads(answer.toString()))  # numbers
    else:
        items = tuple(java.jvm.java.lang.String.join("\n", answer).split("\n"))
    java.detach(answer)
    return items


_pools: dict[tuple[str, bool], EnginePool[JavaProcess]] = {}
_guard = threading.Lock()


def java_pool(
    feature: str, jar: Path, heap_megabytes: int, options: tuple[str, ...] = (), *, shares: bool = True
) -> EnginePool[JavaProcess]:
    """Return the pool of Java processes with a class archive, one of each kind for all environments of this process.

    One process serves 8 environments, or as many as the variable ``TURNGYM_ENVS_PER_JAVA`` says, within one heap.
    One that nobody uses is kept until the interpreter ends, or until :func:`close_java`.

    Args:
        feature: Component that needs Java, for error messages.
        jar: The class archive.
        heap_megabytes: Upper limit of the heap of one process.
        options: Further options of the ``java`` program.
        shares: Whether environments may share a process; else there is one for each.

    Raises:
        ConfigError: The variable holds no number above 0.
    """
    key = feature, shares
    with _guard:
        pool = _pools.get(key)
        if pool is None or pool.process != os.getpid():
            seats = os.environ.get(SEATS_VARIABLE, str(_SEATS))
            if not seats.isdecimal() or int(seats) < 1:
                raise ConfigError(f"{SEATS_VARIABLE} must be a number of at least 1, got {seats!r}.")
            start = functools.partial(JavaProcess, feature, jar, heap_megabytes, options)
            pool = _pools[key] = EnginePool(start, seats=int(seats) if shares else 1)
        return pool


def _java_pools() -> tuple[EnginePool[JavaProcess], ...]:
    """Return the pools of this process."""
    with _guard:
        return tuple(pool for pool in _pools.values() if pool.process == os.getpid())


def close_java() -> None:
    """End all Java processes of this process; environments that still use one get :class:`JavaGone`."""
    pools = _java_pools()
    with _guard:
        _pools.clear()
    for pool in pools:
        pool.close()


def _end(process: subprocess.Popen[bytes], gateways: Sequence[Any], owner: int) -> None:
    """Kill the process, which holds nothing worth saving, and close every pipe and socket to it."""
    if os.getpid() != owner:
        return  # a fork of the owner must not end the owner's process
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    for gateway in gateways:
        gateway.close()


def _connect(client: Any) -> Any:
    """Return a new connection; unlike py4j's own way, one that fails leaves no socket open."""
    from py4j.java_gateway import GatewayConnection

    connection = GatewayConnection(client.gateway_parameters, client.gateway_property)
    try:
        connection.start()
    except BaseException:
        for each in (getattr(connection, "stream", None), connection.socket):
            if each is not None:
                each.close()
        raise
    return connection
