"""How it happens: the model, sampling, scoring, credit, the update, snapshots.

May import torch, transformers, accelerate and the rooms below; never Textual or `rlplay.ui`. Start with `loop.py`:
reinforcement learning on a language model as one generator.
"""
