"""A run as one page that replays it in a browser, without a server or a network.

`playback.py` takes the recorded run in order, `frames.py` makes of each update what the page shows, `told_lesson.py`
plays the scenario's script beside it, and `page.py` puts both into `page.html` with its script and style.
"""
