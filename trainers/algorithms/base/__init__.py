"""What methods derive from: the clipped policy loss, critics, modifiers, KL in the reward."""
