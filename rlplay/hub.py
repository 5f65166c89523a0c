"""Hugging Face's hub, which serves models and datasets by name: its address, and whether it answers."""

from __future__ import annotations

import threading

PATIENCE = 8.0
"""Seconds without an answer after which the hub counts as out of reach."""


def address() -> str:
    """The hub's host, or the mirror's that HF_ENDPOINT names."""
    from huggingface_hub.constants import ENDPOINT

    return str(ENDPOINT).partition("//")[2] or str(ENDPOINT)


def out_of_reach() -> str:
    """Why the hub cannot be reached, in one line; empty if it answers with any status.

    This asks once and waits `PATIENCE` seconds at most; huggingface_hub would retry each file for a minute.
    """
    result: list[str] = []

    def request() -> None:
        from huggingface_hub import constants, get_session

        try:
            get_session().head(constants.ENDPOINT, timeout=PATIENCE)
        except Exception as error:  # their types depend on the library's version; an HTTP error status raises none
            result.append(f"{address()} cannot be reached: {str(error).strip() or type(error).__name__}".rstrip("."))
        else:
            result.append("")

    # A daemon thread, because no timeout bounds the look-up of a host name.
    thread = threading.Thread(target=request, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return result[0] if result else f"{address()} has not answered for {PATIENCE:.0f} s"
