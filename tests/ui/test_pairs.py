"""Updates that learn from answers: no text mentions rewards, ratios or clipping, which they lack."""

import msgspec
import numpy as np
import pytest
from textual.app import App

from rlplay.algorithms.apply import resolve
from rlplay.trace.history import History
from rlplay.trace.records import Credited, Finished, Scored, Staged, Stepped
from rlplay.trace.update import Update
from rlplay.ui.curves.curve_panels import CurvePanels
from rlplay.ui.curves.first_views import OVERVIEW
from rlplay.ui.formula.formula_lines import TokenNumbers
from rlplay.ui.formula.loss import objective
from rlplay.ui.formula.pair_terms import pair_scores
from rlplay.ui.plot.catalogue import IMITATION, PAIRS, REWARD, SCORES
from rlplay.ui.plot.curve_view import single
from rlplay.ui.plot.picture import Size
from rlplay.ui.plot.plot_data import NOT_COMPUTED, PlotData
from rlplay.ui.words import pair_updates as pairs
from rlplay.ui.words.narration import narrate, narrate_run
from tests.recorded import synthetic_update
from tests.ui.stage import all_text, on_screen, playground, settled

REWARD_MODEL = {"loss_type": "reward"}

METRICS = {
    "loss": 0.6,
    "num_tokens": 100.0,
    "rewards/chosen": 0.1,
    "rewards/rejected": -0.05,
    "rewards/margins": 0.15,
    "rewards/accuracies": 0.75,
    "logps/chosen": -3.0,
    "logps/rejected": -4.0,
}


def settings(algorithm):
    return resolve({"algorithm": algorithm})


TIED = "1 tie: the same text or the same score, so they get no label and teach nothing. You left 1 out."
ROLES = ["chosen", "rejected", "tie", "tie", "rejected", "chosen", "", ""]


def records(metrics=METRICS):
    for record in synthetic_update(1, generations=2, steps=1):
        if isinstance(record, Scored):
            yield msgspec.structs.replace(record, roles=ROLES)
        elif isinstance(record, Stepped):
            yield msgspec.structs.replace(record, metrics=metrics, importance_ratio=np.ones_like(record.logprobs))
        elif isinstance(record, Finished):
            yield msgspec.structs.replace(record, metrics=metrics)
        else:
            yield record


@pytest.mark.parametrize(
    ("algorithm", "metrics", "text"),
    [
        ("dpo", METRICS, "in 75.0 % of the pairs the chosen answer has the higher implicit reward; mean margin 0.15"),
        ("sft", {"loss": 0.3, "num_tokens": 9.0, "mean_token_accuracy": 0.9}, "90.0 % of the answers' tokens"),
    ],
)
def test_every_phase_has_its_own_narration(algorithm, metrics, text):
    update, history, narrations = Update(1), History(), []
    for record in records(metrics):
        update.add(record)
        history.add(record)
        narrations.append(narrate(update, history, settings(algorithm)))
    given, labelled, _, stepped, after = (entry.happened for entry in narrations)
    assert "8 answers to 4 prompts. Their probabilities" in given
    assert labelled == "In 2 of 4 pairs one answer is labelled better. " + TIED
    assert text in stepped
    assert text in after
    words = " ".join(entry.happened + entry.next for entry in narrations)
    for wrong in ("nan", "ratio", "how many will do well", "does not measure progress"):
        assert wrong not in words
    assert ("which of two" in narrations[0].next) == (algorithm == "dpo"), "fine-tuning has one answer to each prompt"
    assert "1 update" in narrate_run(history).happened


def test_demonstrations_are_imitated_and_an_update_of_ties_says_that_it_took_no_step():
    update = Update(1)
    for record in records():
        update.add(record)
    imitated = msgspec.structs.replace(update.scored, roles=["chosen"] * 8)
    update.add(imitated)
    assert pairs.labelled(update) == "All 8 answers are to be imitated."
    update.steps.clear()
    update.finished = msgspec.structs.replace(update.finished, metrics={"num_tokens": 9.0})
    assert (
        "Update 1: no pair has a better answer, so no step was taken."
        in narrate(update, History(), settings("dpo")).happened
    )


def test_a_tie_has_no_loss_of_its_own():
    update = Update(1)
    for record in records():
        update.add(record)
    dpo = resolve({"algorithm": "dpo"})
    assert pair_scores(update, 0, dpo).chosen
    assert [pair_scores(update, completion, dpo) for completion in (2, 3, 6)] == [None] * 3


@pytest.mark.parametrize("algorithm", ["dpo", "kto", "simpo", "orpo", "sft"])
def test_the_formula_is_that_of_the_loss(algorithm):
    numbers = TokenNumbers(-0.4, 0.5, 1.0, 0, dloss_dlogp=-0.01)
    lines = ["".join(text for text, _ in line) for line in objective(resolve({"algorithm": algorithm}), numbers)]
    assert any(line.startswith("L = ") for line in lines)
    assert not any("min(" in line for line in lines)
    assert "∂L/∂ℓ = −0.01: pulls it up" in lines


async def test_the_curves_are_those_of_pairs_and_a_chosen_one_stays():
    class Host(App):
        def compose(self):
            yield CurvePanels()

    history = History()
    for record in records():
        history.add(record)
    async with Host().run_test(size=(160, 12)) as pilot:
        curves = pilot.app.query_one(CurvePanels)
        curves.show(history, None, settings("grpo"))
        curves.panels[3].put(single("loss"))
        curves.show(history, None, settings("dpo"))
        assert [panel.view for panel in curves.row] == [*PAIRS[:3], single("loss")]
        assert "0.1" in str(curves.panels[1].border_title)
        curves.show(history, None, settings("grpo"))
        assert [panel.view for panel in curves.panels[:3]] == list(OVERVIEW[:3])
        assert curves.panels[0].view == REWARD
        assert str(curves.panels[0].render()) == NOT_COMPUTED


@pytest.mark.parametrize(
    ("algorithm", "views", "logged"),
    [
        ("sft", IMITATION, {"loss": 2.0, "mean_token_accuracy": 0.5, "logps/chosen": -9.0, "entropy": 1.0}),
        ("reward-model", SCORES, {"loss": 0.7, "accuracy": 0.5, "margin": 0.1, "mean_reward": 0.0, "grad_norm": 1.0}),
    ],
)
async def test_no_panel_promises_what_never_comes_in_a_stage(algorithm, views, logged):
    app, source = playground(settings=msgspec.to_builtins(settings(algorithm)))
    async with app.run_test(size=(160, 45)) as pilot:
        source.status(**msgspec.to_builtins(settings(algorithm)))
        await settled(pilot)
        assert [panel.view for panel in app.panels.curves.row] == list(views)
        source.records(records({**logged, "num_tokens": 100.0}))
        await settled(pilot)
        assert not any(panel.has_class("-words") for panel in app.panels.curves.row), "each shows a curve"


async def test_a_reward_model_does_not_lack_signal():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        credited = [msgspec.structs.replace(r, advantages=np.zeros_like(r.advantages)) if isinstance(r, Credited) else r
                    for r in records()][:3]  # fmt: skip
        source.records(credited)
        source.status(0, phase="credit")
        await settled(pilot)
        assert "all equal" in all_text(app.panels.rollouts)
        source.records(
            [
                Staged(
                    update=1,
                    index=1,
                    stages=2,
                    name="rank",
                    settings={**app.play.session.on_record(), **REWARD_MODEL},
                )
            ]
        )
        await settled(pilot)
        assert "all equal" not in all_text(app.panels.rollouts)
        assert "no advantages" in app.panels.narrator.render().plain


@pytest.mark.parametrize(
    ("view", "metrics", "title"),
    [
        (PAIRS[2], {"rewards/margins": 0.25}, "Margin "),
        (PAIRS[2], {"rewards/margins": 0.25, "rewards/accuracies": 0.75}, "Accuracy "),
        (IMITATION[2], {"grad_norm": 2.0}, "Gradient norm "),
        (IMITATION[2], {"grad_norm": 2.0, "logps/chosen": -3.0}, "Log-probability "),
    ],
)
def test_what_a_trainer_does_not_compute_gives_way_to_what_it_has(view, metrics, title):
    history = History()
    finished = synthetic_update(1)[-1]
    history.add(msgspec.structs.replace(finished, metrics=metrics))
    source = PlotData(history)
    assert view.titles(source, None, False)[0].plain.startswith(title)
    assert not isinstance(view.draw(source, Size(40, 8), False), str)
