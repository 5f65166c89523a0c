"""A token's probability that can be dragged, and the reward that would have moved it there."""
