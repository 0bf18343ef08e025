"""The rules that an environment is checked by; :func:`turngym.envs.check.check` runs them."""
