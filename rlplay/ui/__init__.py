"""The screen: the app, and a room for each thing that it shows.

May import Textual and the rooms below the engine; never torch, transformers or `rlplay.engine`. Start with
`app.py` (Textual's side), then `main/playground.py` (the state, and what joins it), `main/refresh.py` (the one clock
that paints) and the `*_actions.py` (what each verb does). A room has its panel or dialogue, its words and
what it draws: `tokens`, `answers`, `curves` with their pictures `river`, `pull` and `world`, and above the main screen
`knobs`, `probe`, `compare`, `lesson` and others. All are made of `session`, `parts`, `plot`, `words`, `formula` and
`format`; `pyproject.toml` has their order. No widget computes mathematics of learning: it shows what records hold, and
formulas are those of `rlplay.algorithms`.
"""

import os

# Textual shows a key's effect up to two frames later. At 60 frames a second that is most of a key's latency.
os.environ.setdefault("TEXTUAL_FPS", "240")
