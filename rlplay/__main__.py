"""`python -m rlplay` is the `rlplay` command."""

from rlplay.cli import main

main()
