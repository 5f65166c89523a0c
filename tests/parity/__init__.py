"""rlplay's numbers beside those of TRL's trainers and verl's functions, on the same fixed tensors.

`python -m tests.parity.table` prints the worst differences; `test_parity.py` asserts their limits on the same cases.
`trl_policy.py` and `trl_preference.py` run TRL's own code on trainers without a model; `verl_cases.py` reads what
`record_verl.py` recorded of verl; `reference_cases.py` takes the formulas written a second time,
`trpo_case.py` a step of TRPO's with the whole Fisher matrix written out. `ours.py` is rlplay's
side of an update that learns from rewards.
"""
