"""The screen: the app, its screens and widgets, the plots and the styles.

May import Textual, plotext, `rlplay.trace`, `rlplay.scenario` and `rlplay.link`; never torch, transformers or
`rlplay.engine`. Start with `app.py`. Widgets show recorded numbers; none of them computes the mathematics of learning.
"""

import os

# Textual shows a key's effect up to two frames later. At 60 frames a second that is most of a key's latency.
os.environ.setdefault("TEXTUAL_FPS", "240")
