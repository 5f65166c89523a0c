"""The state of the screen as plain data, filled from events and read by panels. No widgets here."""
