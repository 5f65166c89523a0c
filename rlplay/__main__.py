"""`python -m rlplay` is the `rlplay` command."""

import sys

if not sys.flags.safe_path:
    del sys.path[0]  # the current folder: a file there must not take the place of a library

from rlplay.cli.main import main

main()
