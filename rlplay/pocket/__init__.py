"""The bundled model: a corpus that is noisy on purpose, a tokenizer, the recipe that trains on them, the weights.

`POCKET_PATH` is an ordinary Hugging Face model folder; nothing else here is needed to use it. To remake it, run
`python -m rlplay.pocket --out DIR`. The corpus imports `rlplay.tasks`, to keep held-out prompts out; the recipe
alone imports torch, transformers and the engine's supervised loop. Nothing here knows the screen.

Start with `corpus.py`, which mixes the skills; then `recipe.py`.
"""

from __future__ import annotations

from pathlib import Path

POCKET_PATH = Path(__file__).parent / "weights"
