"""Tools for agents: model-written code in a sandbox."""
