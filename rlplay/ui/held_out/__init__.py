"""The held-out prompts: what became of them over the evaluations, and their answers."""
