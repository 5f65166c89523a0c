"""How it happens: the model, sampling, rewards, credit, objectives, the update, snapshots.

May import torch, transformers, accelerate, `rlplay.trace`, `rlplay.scenario` and `rlplay.tasks`; never Textual or
`rlplay.ui`. Start with `loop.py`: reinforcement learning on a language model as one generator.
"""
