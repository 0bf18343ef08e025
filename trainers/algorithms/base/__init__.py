"""Base classes of methods: the clipped policy loss, critics, modifiers, KL in the reward."""
