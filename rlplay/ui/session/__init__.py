"""What the screen shows, as plain data: filled from events, read by panels. No widget is known here."""
