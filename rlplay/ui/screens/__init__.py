"""What opens over the main screen: settings, help and the log."""
