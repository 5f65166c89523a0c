"""rlplay's numbers beside those of TRL's trainers and verl's functions, on the same fixed tensors.

`python -m tests.parity.table` prints the worst differences; `test_parity.py` asserts their limits on the same cases.
`trl_policy.py` runs TRL's own code on trainers without a model; `verl_cases.py` reads what `record_verl.py` recorded
of verl. `ours.py` is rlplay's side.
"""
