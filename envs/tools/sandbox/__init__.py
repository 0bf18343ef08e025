"""Running code that a model wrote, where it can do no harm.

    with make_sandbox() as sandbox:                 # the strongest backend that is installed
        with sandbox.session() as session:          # state is kept between its calls
            session.run("x = 2")
            print(session.run("print(x + 1)").stdout)

``protocol`` says what a backend is, ``driver`` is the program inside, ``host`` talks to it, ``bubblewrap`` and
``docker`` are backends, ``system`` says which files of the host are seen, ``calls`` and ``seccomp`` which calls of the
kernel are allowed, ``pool`` keeps started sandboxes ready. A backend that is missing is an error, never a weaker one.
"""

from turngym.envs.tools.sandbox.protocol import SANDBOXES, Limits, Result, Sandbox, Session, make_sandbox

__all__ = ["SANDBOXES", "Limits", "Result", "Sandbox", "Session", "make_sandbox"]
