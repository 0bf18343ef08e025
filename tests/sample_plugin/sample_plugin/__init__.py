"""A package of a third party, which registers one thing of every kind with turngym."""
