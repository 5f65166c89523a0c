"""The belief river: the next-token distribution at the cursor over all updates."""
