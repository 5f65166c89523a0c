"""The objective of one token, written out with its numbers: pure functions from settings and numbers to text.

`parts.py` holds what a line and a token's numbers are, `credit.py` how its advantage came about, `surrogate.py` the
objective per token, `loss.py` what it counts for and how hard it pulls, `pair.py` the losses of pairs, `difference.py`
how two algorithms differ. The symbols are those of `rlplay.algorithms.equations`.
"""
