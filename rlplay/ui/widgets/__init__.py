"""The panels of the main screen. Each says in its `HELP` what it shows and how to read it."""
