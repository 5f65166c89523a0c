"""The list of all updates."""
