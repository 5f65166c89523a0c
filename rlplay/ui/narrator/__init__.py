"""The text strip at the bottom, and its caption in dialogues."""
