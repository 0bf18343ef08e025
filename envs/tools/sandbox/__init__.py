"""Running model-written code where it can do no harm.

    with make_sandbox() as sandbox:                 # the strongest backend that is installed
        with sandbox.session() as session:          # state is kept between its calls
            session.run("x = 2")
            print(session.run("print(x + 1)").stdout)

``protocol`` says what a backend is, ``driver`` is the program inside, ``host`` talks to it, ``bubblewrap`` and
``docker`` are backends, ``system`` says which files of the host are seen, ``calls`` and ``seccomp`` which calls of the
kernel are allowed, ``pool`` keeps started sandboxes ready. A missing backend is an error; there is no fallback to a
weaker one.

What each backend promises, whatever code does (``*``: as an ordinary user, see below):

=========  =========================================  ================================  ================================
Promise    bubblewrap                                 docker                            docker with runsc (gVisor)
=========  =========================================  ================================  ================================
Files      the system's Python without packages,      those of the image, read-only;    as docker
           read-only; a scratch folder of bounded     a scratch folder of bounded size
           size
Network    none; sockets of four families, in a       as bubblewrap                     none; gVisor's own stack
           namespace of their own
Processes  none of others seen, signalled or traced;  as bubblewrap                     as docker, but code can end its
           at most ``processes`` at once; all end                                       own session
           with the session; the driver cannot be
           ended, stopped, read or changed by code
Memory     of each process and of all together *      as bubblewrap                     as docker, unless runsc ignores
                                                                                        control groups
Time       each call by the clock, each process by    as bubblewrap; ``cpus`` at once   as docker
           processor time
Devices    null, zero, full, random, urandom, tty     those of Docker, no others        gVisor's own
Calls      an allow-list stricter than Docker's       the same list                     gVisor's kernel; few of the
           (``calls``)                                                                  host's behind it
Reports    bounded, checked, only the driver's        as bubblewrap                     bounded and checked; code can
                                                                                        reach the driver's pipes, and so
                                                                                        speak for itself alone
=========  =========================================  ================================  ================================

An ordinary user can make no control groups: all processes of a session together may then take ``processes`` times
``memory_mib``, which is said in a warning. Everything else holds. No backend limits what a session's background
processes compute between its calls, other than each one's processor time; they end with the session. Tests:
``test_sandbox_files`` (files), ``_attacks`` (network, memory, time), ``_reach`` (processes, files), ``_calls`` (calls,
sockets), ``_reports`` (reports, the driver), ``_users`` (ordinary users).
"""

from turngym.envs.tools.sandbox.protocol import SANDBOXES, Limits, Result, Sandbox, SandboxSession, make_sandbox

__all__ = ["SANDBOXES", "Limits", "Result", "Sandbox", "SandboxSession", "make_sandbox"]
