"""Methods with a learner of their own: :data:`turngym.trainers.algorithms.LEARNERS` has them by name."""
