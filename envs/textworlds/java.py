"""Finding Java, and one Java process per environment: started late, capped in memory, never left behind."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from turngym.errors import MissingExtra, TurngymError

T = TypeVar("T")
HEAP_MEGABYTES = 128
CALL_TIMEOUT_SECONDS = 120.0
_OPTIONS = (
    "-XX:+UseSerialGC",  # one collector thread: many environments share a machine
    "-XX:TieredStopAtLevel=1",  # the quick compiler: twice the speed of the default in runs of a few minutes
    "-XX:-UsePerfData",  # no file in /tmp that a killed process would leave behind
    "-Xshare:auto",
)


class JavaGone(TurngymError, RuntimeError):
    """The Java process of an environment has ended or does not answer."""


class JavaFailed(TurngymError, RuntimeError):
    """A call into Java raised an exception there; the process goes on."""


def find_java(feature: str) -> str:
    """Return the path of the ``java`` program: from JAVA_HOME, else from the PATH.

    Args:
        feature: What needs Java, for the error message.

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
    """One Java process that serves one object over py4j, bound to loopback and guarded by a token.

    The process ends with ``close``, with the garbage collection of this object, at interpreter exit, and (since its
    standard input closes) with the death of this process by any cause.

    Args:
        feature: What needs Java, for error messages.
        jar: The class archive; its folder becomes the working directory.
        entry: Dotted name of the class to construct and serve.
        heap_megabytes: Upper limit of Java's heap.

    Raises:
        MissingExtra: There is no Java runtime.
        JavaGone: The process ended while it started.
    """

    def __init__(self, feature: str, jar: Path, entry: str, heap_megabytes: int = HEAP_MEGABYTES) -> None:
        from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path

        self.feature = feature
        command = [find_java(feature), f"-Xmx{heap_megabytes}m", *_OPTIONS]
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
        end = weakref.finalize(self, _end, self._process, None, os.getpid())
        assert self._process.stdout is not None
        port, token = (self._process.stdout.readline().decode().strip() for _ in range(2))
        if not port.isdigit() or not token:
            end()
            raise JavaGone(f"{feature}: Java ended while it started (exit status {self._process.returncode}).")
        gateway = JavaGateway(
            gateway_parameters=GatewayParameters(
                port=int(port),
                auth_token=token,
                read_timeout=CALL_TIMEOUT_SECONDS,
                enable_memory_management=False,  # else the garbage collector calls Java, which may be gone by then
            )
        )
        end.detach()
        self._end = weakref.finalize(self, _end, self._process, gateway, os.getpid())
        self._gateway = gateway
        self._entry: Any = None
        # What Java prints goes to nowhere, so that nobody has to drain a pipe.
        self.run(lambda java, _: java.jvm.java.lang.System.setOut(java.jvm.java.io.PrintStream(os.devnull)))
        self._process.stdout.close()
        self._entry = self.run(lambda java, _: functools.reduce(getattr, entry.split("."), java.jvm)())

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._end.alive and self._process.poll() is None

    def call(self, method: str, *arguments: str | int | bool) -> Any:
        """Call a method of the served object; return its answer, a Java list as a tuple. Errors as in :meth:`run`."""
        from py4j.java_collections import JavaList

        def ask(java: Any, entry: Any) -> Any:
            answer = getattr(entry, method)(*arguments)
            if not isinstance(answer, JavaList):
                return answer
            items = tuple(answer)
            java.detach(answer)
            return items

        return self.run(ask)

    def run(self, function: Callable[[Any, Any], T]) -> T:
        """Return ``function(java, entry)``: py4j's gateway and the served object.

        Java keeps every object that it hands out until ``java.detach(it)``: the function lets go of what it asked for.

        Raises:
            JavaFailed: A method raised an exception; the message is the exception's.
            JavaGone: The process has ended, or did not answer in time; it is closed.
        """
        from py4j.protocol import Py4JError, Py4JJavaError

        if not self.is_alive():
            raise self._gone()
        try:
            return function(self._gateway, self._entry)
        except Py4JJavaError as error:
            message = str(error.java_exception.getMessage())
            self._gateway.detach(error.java_exception)
            raise JavaFailed(message) from None
        except (Py4JError, OSError) as error:
            raise self._gone() from error

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


def _end(process: subprocess.Popen[bytes], gateway: Any, owner: int) -> None:
    """Kill the process, which holds nothing worth saving, and close every pipe and socket to it."""
    if os.getpid() != owner:
        return  # a fork of the owner must not end the owner's process
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    if gateway is not None:
        gateway.close()
