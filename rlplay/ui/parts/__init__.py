"""What dialogues and panels are made of: lists, fields, frames and the messages that they send."""
