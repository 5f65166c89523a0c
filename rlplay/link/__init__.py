"""The wire between the screen's process and the engine's: messages, framing, client and server.

May import `rlplay.trace` and `rlplay.scenario`; never torch or Textual. Start with `messages.py` (commands and
events), then `client.py` (the screen's end, which starts the engine) and `server.py` (the engine's end).
"""
