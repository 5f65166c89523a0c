"""Rewards from a server with OpenAI's API: a judge's score of an answer, or a teacher's log-probability of it.

A small YAML file says whom to ask, and how; its name is the reward's. It is read as the user's code is, only once
`rlplay/trusted.py` allows it, because prompts and answers go to the address in it. Start with `judge.py`.
"""
