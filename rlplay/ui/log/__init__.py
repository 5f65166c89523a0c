"""The messages of the engine, and the question before a run ends."""
