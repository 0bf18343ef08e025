"""Agent programs in Bubblewrap: a file system of what they need, no network but the gateway, limits, one end for all.

What holds whatever a program does:

- Files: ``/usr``, the interpreter of the command, the files that the command names and those of ``--agent.mounts``,
  all read-only, never turngym itself; its folder and ``/tmp`` in memory, of limited size.
- Network: a namespace with a loopback device, on which a forwarder passes the gateway's port on to a Unix socket. There
  the program has the key of its episode and no other.
- Environment: the variables of its episode; none of the operator's.
- Processes: none of others are seen; their number and memory are limited, for all together where this process may make
  control groups, else for each; all end with the program.
- Kernel: the calls that :mod:`turngym.envs.tools.sandbox.calls` allows.

``bubblewrap`` starts it, ``mounts`` says what is seen, ``inside`` is process 1 in it.
"""

from turngym.agents.gateway.programs.sandbox.bubblewrap import SandboxLauncher

__all__ = ["SandboxLauncher"]
