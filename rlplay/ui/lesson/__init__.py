"""Lessons on the screen: the script, the learner, the list of lessons, the first minute."""
