"""Rollouts on a Ray cluster: workers with environments and a copy of the policy, and the task that divides episodes."""
