"""The screen: the app, its screens and widgets, the plots and the styles.

May import Textual, plotext and the rooms below the engine; never torch, transformers or `rlplay.engine`. Start with
`app.py` (Textual's side), then `playground.py` (the state, and what joins it), `panels.py` (the widgets of the main
screen), `refresh.py` (the one clock that paints them) and the `*_actions.py` (what each verb does). No widget computes
mathematics of learning: it shows what records hold, and formulas are those of `rlplay.algorithms`.
"""

import os

# Textual shows a key's effect up to two frames later. At 60 frames a second that is most of a key's latency.
os.environ.setdefault("TEXTUAL_FPS", "240")
