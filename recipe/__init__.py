"""How the bundled model was made: an intentionally noisy corpus, a tokenizer, and a supervised run on them.

Nothing of it runs in rlplay, which needs the weights in `rlplay/pocket` alone; so it lies beside the package and is not
in the wheel. It stays in the repository because a model should be makeable again: `python -m recipe --out DIR`. The
corpus imports `rlplay.tasks` to leave out held-out prompts.

Start with `corpus.py`, which mixes the skills; then `training.py`.
"""
