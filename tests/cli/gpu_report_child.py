"""In place of the process that runs checks: each does what its place says."""

from __future__ import annotations

import json
import os
import signal
import sys
import time


def main() -> None:
    device, _folder, *places = sys.argv[1:]
    if device == "none":
        return print(json.dumps({"none": "it is in the next room"}))
    for place in places:
        print(json.dumps({"began": place}), flush=True)
        match place:
            case "says":
                print(json.dumps({"line": ["ok", "", f"on {device}"]}), flush=True)
            case "raises":
                print(json.dumps({"line": ["FAILS", "", "no"]}), flush=True)
                return print(json.dumps({"ended": place}))
            case "dies":
                print("Segmentation fault, or so", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            case "sleeps":
                time.sleep(600)
    return print(json.dumps({"done": True}))


main()
