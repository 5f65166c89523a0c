"""A recorded run for other tools: tables of tokens and numbers, events for TensorBoard, a script for TRL.

May import `rlplay.trace`, `rlplay.algorithms`, `rlplay.scenario` and `rlplay.tasks`; never torch or Textual.
"""
