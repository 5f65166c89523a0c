"""Hugging Face's hub: the message when it is out of reach, and that nobody waits for it."""

import threading
from types import SimpleNamespace

import huggingface_hub

from rlplay import hub


def answering(monkeypatch, head):
    monkeypatch.setattr(huggingface_hub, "get_session", lambda: SimpleNamespace(head=head))


def test_an_answer_of_any_kind_is_an_answer(monkeypatch):
    answering(monkeypatch, lambda url, timeout: SimpleNamespace(status_code=404))
    assert hub.out_of_reach() == ""


def test_an_obstacle_is_reported(monkeypatch):
    def refuse(url, timeout):
        raise ConnectionError("name or service not known")

    answering(monkeypatch, refuse)
    assert hub.out_of_reach() == f"{hub.address()} cannot be reached: name or service not known"


def test_a_hub_that_says_nothing_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(hub, "PATIENCE", 0.05)
    over, asked = threading.Event(), []

    def listen(url, timeout):
        asked.append((url, timeout))
        over.wait()

    answering(monkeypatch, listen)
    assert hub.out_of_reach() == f"{hub.address()} has not answered for 0 s"
    over.set()
    assert asked == [(huggingface_hub.constants.ENDPOINT, 0.05)]
