"""The `rlplay` command line, a file for each group of commands. Each command imports what is heavy itself.

Start with `main.py`.
"""
