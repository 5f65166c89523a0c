"""Algorithms as combinations of choices: what each choice computes, its equation, and all that is said of it.

A choice is a row in the file of its axis: `streams`, `returns`, `baselines`, `scales`, `ratios`, `surrogates`,
`corrections`, `divergences`, `distillation`, `aggregation`, `masks`, `pair_losses`, `answer_scores`. Its computation is
written over an array namespace (`arrays.py`): the engine runs it on tensors, the screen on recorded numbers, and on
`symbols.py` it writes its own equation. `settings.py` chooses among the rows, `rules.py` says which fit each other,
`catalogue.py` names combinations, `own_choices.py` takes the user's functions, `equations.py` writes an algorithm out.
To add a surrogate, add its function and its row to `surrogates.py`.

May import `rlplay.trace` and `rlplay.user_code`; never torch or Textual.
"""
