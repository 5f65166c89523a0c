"""The objective of one token, written out with its numbers: pure functions from settings and numbers to text.

`formula_lines.py` defines lines and a token's numbers, `advantage.py` writes the advantage, `surrogate.py` the
objective per token, `loss.py` its weight and gradient, `pair_terms.py` the losses of pairs, and `difference.py` the
difference between two algorithms. The symbols are those of `rlplay.algorithms.equations`.
"""
