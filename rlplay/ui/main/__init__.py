"""The main screen: the playground behind it, its panels, what its verbs do, and how it is brought up to date.

Start with `playground.py`. Features that open over it, from `knobs` to `lesson`, join it and are not known here.
"""
