"""Rollouts on a Ray cluster: workers with environments and a policy copy, and the task that distributes episodes."""
