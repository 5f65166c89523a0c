"""A teacher that the policy learns from at every token: who it is, what it reads, and what it makes of the answers.

Begin with `teacher.py`. `load_teacher.py` loads a model of its own, `context.py` writes prompts for it, `average.py`
lets it follow the policy. Imports the rest of the engine; the credit phase, the loss and `prepare.py` import from here.
"""
