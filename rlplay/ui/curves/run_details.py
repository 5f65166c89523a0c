"""What the panels know of a run besides its numbers."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from rlplay.trace.beliefs import Beliefs
from rlplay.trace.evaluations import Evaluations
from rlplay.trace.pulls import PlaneBox
from rlplay.ui.plot.guess import Guess
from rlplay.worlds.world import World


@dataclass(frozen=True)
class RunDetails:
    """What the views draw besides the run's numbers."""

    world: World | None = None
    wanted: Sequence[str] = ()
    """The panels that the scenario wants."""
    beliefs: Beliefs | None = None
    evaluations: Evaluations | None = None
    box: PlaneBox | None = None
    """The part of the pull map that filters the tokens."""
    guess: Guess | None = None
    """What a lesson asks of a curve, and the learner's prediction."""
    awaited: bool = False
    """Whether the run waits for the user's labels, so that no other key plays on."""
    mismatch: str = ""
    """The metric that says how far a sampler is from the policy; empty: they are one."""
    steered: bool = True
    foreign: bool = False
    only: Sequence[str] = ()
    """The metrics of a run that has nothing else; empty: it has answers."""
    on_record: Container[str] = ()
    """The names of the settings that the run states."""
    squares: Mapping[str, float | str] | None = None
    """A world's squares as they are painted by now; None: as the update on the screen had them."""
    readers: Mapping[type, Callable[[], bool]] = field(default_factory=dict)
    """By the kind of a view, what reads one record that it lacks; False if it lacks none."""
