"""The settings: list, changes before they are applied, preview, and share codes."""
