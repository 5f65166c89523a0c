"""`python -m rlplay` is the `rlplay` command."""

from rlplay.cli.main import main

main()
