"""The bundled model: an intentionally noisy corpus, a tokenizer, the recipe that trains on them, and the weights.

The folder `weights`, `rlplay.paths.POCKET_PATH`, is an ordinary Hugging Face model and needs nothing else from here. To
make it again, run `python -m rlplay.pocket --out DIR`. The corpus imports `rlplay.tasks` to leave out held-out prompts.
Only the recipe and `pretraining.py` import torch and transformers. Nothing here knows the screen.

Start with `corpus.py`, which mixes the skills; then `recipe.py`.
"""
