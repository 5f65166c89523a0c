"""The panels of the main screen. The `HELP` of each explains what it shows and how to read it."""
