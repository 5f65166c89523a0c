"""Who taught a token: what each training token's credit did to a log-probability, through the steps that were taken.

Begin with `teach.py`. Everything happens on a second state with weights of its own (`past.py`), so the run never
notices. Imports the rest of the engine; `answering.py` alone imports from here.
"""
