"""`python -m recipe --out DIR`: makes the pocket model again."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import click
import torch

from recipe.card import model_card
from recipe.measure import base_figures
from recipe.training import Recipe, new_model, new_tokenizer, train
from rlplay.tasks import load_task, task_names

_SAMPLES = 512
_STEPS_PER_LINE = 100


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Model folder.")
@click.option("--tokens", type=float, default=9e6, show_default=True, help="Tokens to train on.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the corpus and the weights.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="CPU threads.")
def main(out: Path, tokens: float, seed: int, threads: int) -> None:
    """Make the corpus and the tokenizer, train the pocket model on them, measure it, and write its card."""
    torch.set_num_threads(threads)
    recipe = Recipe(tokens=int(tokens), seed=seed)
    tokenizer = new_tokenizer(seed)
    model = new_model(tokenizer, seed)
    start = monotonic()
    losses = []
    for step in train(model, tokenizer, recipe, out):
        losses.append(step.loss)
        if step.step % _STEPS_PER_LINE == 0 or step.step + 1 == recipe.plan.steps:
            recent = losses[-_STEPS_PER_LINE:]
            click.echo(
                f"step {step.step + 1}/{recipe.plan.steps}  loss {sum(recent) / len(recent):.4f}  "
                f"lr {step.learning_rate:.2e}  grad {step.grad_norm:.2f}  {monotonic() - start:.0f} s"
            )
    final_loss = sum(losses[-_STEPS_PER_LINE:]) / len(losses[-_STEPS_PER_LINE:])
    of_one_turn = [name for name in task_names() if load_task(name).environment is None]
    figures = base_figures(model, tokenizer, of_one_turn, _SAMPLES)
    card = model_card(recipe, model.num_parameters(), final_loss, figures)
    (out / "README.md").write_text(card, encoding="utf-8")
    click.echo(card)


if __name__ == "__main__":
    main()
