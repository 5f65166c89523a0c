"""Which settings a finding would try, and how a rehearsal with them is judged.

Start at `trial.py`: it turns a finding into a question for an engine. `settings_tried.py` has the settings,
`measures.py` each problem's own number, and `outcome.py` judges the engine's answers. Nothing here needs torch.
"""
