"""The wire between the screen's process and the engine's: messages, framing, client and server.

May import `rlplay.trace` and `rlplay.scenario`; never torch or Textual. Start with `messages.py`.
"""
