"""What is seen: the app, its screens and widgets, the plot adapter and the styles.

May import Textual, plotext, `rlplay.trace`, `rlplay.scenario` and `rlplay.link`; never torch, transformers or
`rlplay.engine`. Start with `app.py`. No widget computes mathematics of learning: it shows what records hold.
"""
