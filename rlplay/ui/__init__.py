"""What is seen: the app, its screens and widgets, the plot adapter and the styles.

May import Textual, plotext and the rooms below the engine; never torch, transformers or `rlplay.engine`. Start with
`app.py`, then `playground.py` (what the main screen consists of) and `actions.py` (what each verb does). No widget
computes mathematics of learning: it shows what records hold, and formulas are those of `rlplay.algorithms`.
"""

import os

# Textual shows what a key did up to two of its frames later; at its 60 a second that is most of what a key takes.
os.environ.setdefault("TEXTUAL_FPS", "240")
