"""Hugging Face's hub, from which models and datasets are fetched by name: what it is called, and whether it answers."""

from __future__ import annotations

import threading

PATIENCE = 8.0
"""Seconds until a hub that has not answered is taken to be out of reach."""


def address() -> str:
    """The hub's host, or the mirror's that HF_ENDPOINT names."""
    from huggingface_hub.constants import ENDPOINT

    return str(ENDPOINT).partition("//")[2] or str(ENDPOINT)


def out_of_reach() -> str:
    """Why the hub cannot be reached, in one line; empty if it answers, whatever it says.

    It is asked once and for `PATIENCE` at most, where its own library would try for a minute, file by file.
    """
    heard: list[str] = []

    def knock() -> None:
        from huggingface_hub import constants, get_session

        try:
            get_session().head(constants.ENDPOINT, timeout=PATIENCE)
        except Exception as error:  # whose kinds depend on the library's version; an answer of any status raises none
            heard.append(f"{address()} cannot be reached: {str(error).strip() or type(error).__name__}".rstrip("."))
        else:
            heard.append("")

    # In a thread that nobody waits for at the end: no timeout bounds the look-up of a host's name.
    asking = threading.Thread(target=knock, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    return heard[0] if heard else f"{address()} has not answered for {PATIENCE:.0f} s"
