"""The objective of one token, written out with its numbers: pure functions from settings and numbers to text.

`parts.py` defines lines and a token's numbers, `credit.py` writes the advantage, `surrogate.py` the objective per
token, `loss.py` its weight and gradient, `pair_loss.py` the losses of pairs, and `difference.py` the difference between
two algorithms. The symbols are those of `rlplay.algorithms.equations`.
"""
