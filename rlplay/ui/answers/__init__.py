"""The list of answers: their numbers, order, search line and folding."""
