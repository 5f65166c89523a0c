"""The model card: how the pocket model was made, and what it does before any reinforcement."""

from __future__ import annotations

from recipe.corpus import SKILLS
from recipe.training import Recipe

_HEADER = """\
---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---

# rlplay pocket model

A base model of {parameters:,} parameters (Llama architecture, float32) for watching reinforcement learning on a
laptop. It knows a few small skills and answers more often wrong than right, on purpose: its corpus is synthetic chat
with known shares of good and bad answers, so that a reward has something to choose from. It is of no other use.

Made by `python -m recipe --out DIR --tokens {tokens:.0f} --seed {seed}`: {tokens:,} tokens in batches of {rows}
rows of {row_length}, loss on the assistant's tokens only. Final loss {loss:.4f} nats per token (mean of the last 100
steps). The held-out prompts of rlplay's tasks do not occur in the corpus.
"""


def model_card(recipe: Recipe, parameters: int, loss: float, figures: dict[str, dict[str, float]]) -> str:
    """The card in Markdown; `figures` come from `measure.base_figures`."""
    header = _HEADER.format(
        parameters=parameters,
        tokens=recipe.tokens,
        seed=recipe.seed,
        rows=recipe.rows,
        row_length=recipe.row_length,
        loss=loss,
    )
    corpus = ["## Corpus", "", "| skill | share of conversations | answers |", "| --- | --- | --- |"]
    for name, skill in SKILLS.items():
        kinds = ", ".join(f"{kind} {share:.1%}" for kind, share in skill.kinds.items())
        corpus.append(f"| {name} | {skill.share:.0%} | {kinds} |")
    base = [
        "## Base figures",
        "",
        "512 samples per part at temperature 1.",
        "",
        "| | figure | value |",
        "| --- | --- | --- |",
    ]
    for name, values in figures.items():
        base += [f"| {name} | {figure} | {value:.3f} |" for figure, value in values.items()]
    return "\n".join([header, *corpus, "", *base, ""])
