"""The bundled model: a corpus that is noisy on purpose, a tokenizer, the recipe that trains on them, the weights.

The folder `weights`, `rlplay.paths.POCKET_PATH`, is an ordinary Hugging Face model; nothing else here is needed to use
it. To remake it, run `python -m rlplay.pocket --out DIR`. The corpus imports `rlplay.tasks`, to keep held-out prompts
out; the recipe and `pretraining.py` alone import torch and transformers. Nothing here knows the screen.

Start with `corpus.py`, which mixes the skills; then `recipe.py`.
"""
