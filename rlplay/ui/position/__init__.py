"""Any statistic of the tokens over their position in the answer.

Start at `by_position.py`; `position_hands.py` has the keys.
"""
