"""Changed settings before they are applied: steps, typed values, checks, and the order in which to set them."""

from __future__ import annotations

from collections.abc import Container
from contextlib import suppress
from typing import Any

import msgspec

from rlplay.algorithms.apply import apply, validated
from rlplay.algorithms.catalogue import AXES, PRESETS
from rlplay.algorithms.choice import argument_names
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.named import preset
from rlplay.algorithms.own_choices import allow_all, functions_in, is_own
from rlplay.algorithms.pair_losses import IMITATIONS
from rlplay.algorithms.setting_values import choices, shown
from rlplay.algorithms.settings import CHOICES, LossType, Settings, row
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.link.messages import Abilities
from rlplay.trace.kinds import SomeSettings
from rlplay.trusted import follow, place


class Draft:
    """An editable copy of the run's settings."""

    def __init__(
        self, settings: Settings, live: bool = True, abilities: Abilities | None = None,
        on_record: Container[str] | None = None,
    ) -> None:  # fmt: skip
        """Of the current `settings`; the user's functions run only in a `live` run of rlplay's own engine.

        With `abilities` another program trains, and only some settings can be changed. Of another program's run, only
        those `on_record` are known.
        """
        self._live, self._abilities = live and abilities is None, abilities
        self._original = settings
        self._on_record = on_record
        self._settings = self._original
        self._of_algorithms = {*AXES}

    @property
    def settings(self) -> Settings:
        """All settings as they would be."""
        return self._settings

    @property
    def now(self) -> Settings:
        """All settings as they are now."""
        return self._original

    def differing(self) -> SomeSettings:
        """The settings that would change, with their new values."""
        return {name: self.value(name) for name in KNOBS if self.changed(name)}

    def value(self, name: str) -> Any:
        """The new value of the setting."""
        return getattr(self._settings, name)

    def original(self, name: str) -> Any:
        """The current value of the setting."""
        return getattr(self._original, name)

    def changed(self, name: str) -> bool:
        """Whether the new value differs from the current one."""
        return bool(self.value(name) != self.original(name))

    @property
    def problem(self) -> str:
        """Why the settings are inconsistent, in one line; empty if they are consistent."""
        try:
            validated(self._settings)
        except ValueError as error:
            return str(error)
        return ""

    def put(self, name: str, typed: str) -> None:
        """Set a value that the user has typed; a function named this way may run.

        A number is enough for the weight of a reward that is the only one.

        Raises ValueError, one line, if the setting does not accept it.
        """
        if name == "reward_weights" and len(weights := self.value(name)) == 1:
            with suppress(ValueError):  # it may be a mapping
                self._put(name, dict.fromkeys(weights, float(typed.replace("−", "-"))))
                return
        if self._live and typed != self.value(name):
            follow(place(entry) for entry in functions_in({name: typed}))
        self._put(name, typed)

    def _put(self, name: str, value: Any) -> None:
        if reason := self.fixed(name):
            raise ValueError(f"{name} cannot be changed here: {reason}")
        settings = apply(self._settings, name, value)
        if self._live:
            allow_all(settings)
        if name == "algorithm":
            self._of_algorithms |= {*preset(settings.algorithm).axes}
        self._settings = settings

    def reset(self, name: str) -> None:
        """Reset the setting to its current value; for the algorithm, all that algorithms set as well."""
        names = {name}
        if name == "algorithm":
            names |= self._of_algorithms
        held = {each: self.original(each) for each in names}
        self._settings = msgspec.structs.replace(self._settings, **held)

    def take_back(self, settings: Settings) -> None:
        """Be again as `settings` were drafted before."""
        self._settings = settings

    def counts(self, name: str) -> bool:
        """Whether the setting is a number, or none."""
        return not choices(name) and not isinstance(self.value(name), bool | dict | str)

    def nudge(self, name: str, direction: int) -> None:
        """One step up or down: the next choice, a step of a number, or a factor for a logarithmic one."""
        words = tuple(PRESETS) if name == "algorithm" else choices(name)
        if words:
            words += (self.value(name),) if self.value(name) not in words else ()
            self._put(name, words[(words.index(self.value(name)) + direction) % len(words)])
        elif isinstance(self.value(name), bool):
            self._put(name, not self.value(name))
        elif not isinstance(self.value(name), dict):
            self._put(name, self._stepped(name, direction))

    def changes(self) -> SomeSettings:
        """The changes to apply: the algorithm, and the settings that differ from it and from the current ones."""
        base, wanted = self._original, SomeSettings()
        if self.changed("algorithm"):
            wanted["algorithm"] = self._settings.algorithm
            base = apply(base, "algorithm", self._settings.algorithm)
        return wanted | self._differences(base)

    def listed(self, at: str | None, only: Container[str]) -> list[str]:
        """The settings to list, of those in `only`: without settings of other algorithms, unless they are changed.

        Another trainer's run may not say how some were set; these are not listed.

        A changed setting, and the one under the cursor, `at`, are always among them.
        """
        changed_or_at = [name for name in KNOBS if self.changed(name) or name == at]
        return [name for name in KNOBS if name in changed_or_at or (name in only and self._usual(name))]

    def _usual(self, name: str) -> bool:
        """Whether the setting belongs to the current algorithm; of another trainer's run, whether it is on record."""
        return not self.foreign(name) if self._on_record is None else name in self._on_record

    def foreign(self, name: str) -> str:
        """Why the setting does not apply to the current algorithm; empty if it does."""
        s, knob = self._settings, KNOBS[name]
        if s.loss_type != "policy_gradient" and _of_rewards(knob, s.loss_type):
            return f"loss_type={s.loss_type} does not use it"
        other, words = knob.needs or (name, (self.value(name),))
        if getattr(s, other) not in words:
            if is_own(str(getattr(s, other))) and _may_take(s, other, name):
                return ""
            return f"only with {other}={' or '.join(map(shown, words))}, not {shown(getattr(s, other))}"
        return ""

    def fixed(self, name: str) -> str:
        """Why the program that trains does not take a new value; empty if it does."""
        there = self._abilities
        if there is None or name in there.changeable:
            return ""
        return f"{there.trainer} reads it only when training begins"

    def idle(self, name: str) -> str:
        """Why the setting has no effect with the current other settings, or cannot be changed; empty if it has one."""
        s = self._settings
        if fixed := self.fixed(name):
            return fixed
        if self._on_record is not None:  # what it depends on may not be known
            return ""
        if (foreign := self.foreign(name)) or s.loss_type != "policy_gradient":
            return foreign
        kl, trpo = ("beta", "kl_estimator", "kl_anchor", "kl_ctrl"), s.surrogate_row.trust_region
        one_step = name in ("epsilon", "epsilon_high") and s.ratio_stays_one
        whole = name == "gamma" and s.returns == "broadcast" and s.reward_stream != "shaping"
        reasons = (
            (one_step, "there is only one optimizer step per batch"),
            (name in kl and s.kl_placement == "none", "kl_placement=none leaves the KL out"),
            (trpo and name in ("beta", "kl_ctrl", "max_grad_norm"), "only max_kl limits surrogate=trpo"),
            (trpo and name == "kl_estimator", "max_kl limits the exact KL"),
            (name == "warmup_steps" and s.lr_scheduler_type == "constant", "lr_scheduler_type=constant has none"),
            (trpo and name in _OF_ADAM and s.baseline != "value", "surrogate=trpo takes no Adam step"),
            (whole, "returns=broadcast does not discount"),
        )
        return next((text for idle, text in reasons if idle), "")

    def _differences(self, base: Settings) -> SomeSettings:
        return {name: self.value(name) for name in KNOBS if self.value(name) != getattr(base, name)}

    def _stepped(self, name: str, direction: int) -> Any:
        knob, value = KNOBS[name], self.value(name)
        low = -float("inf") if knob.low is None else knob.low
        high = float("inf") if knob.high is None else knob.high
        if value is None:
            start = self._settings.epsilon if name == "epsilon_high" else low
            return start if direction > 0 else None
        if getattr(Settings(), name) is None and direction < 0 and value <= low:
            return None
        if knob.log:
            moved = float(f"{max(value, 1e-7) * knob.step**direction:.3g}")
        else:
            moved = round(value + direction * knob.step, 6)
        moved = min(max(moved, low), high)
        return round(moved) if isinstance(value, int) else moved


_OF_ADAM = ("learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay")
"""What only steps of the optimizer read."""

_OF_VALUES = ("reward_weights", "reward_stream", "overlong_buffer", "gamma", "learning_rate", "loss_type")
"""What Q-learning and SARSA read besides the settings of sampling."""


def _may_take(settings: Settings, other: str, name: str) -> bool:
    """Whether the user's function chosen for `other` has an argument `name`; True if it was not read."""
    compute = row(settings, other).compute
    return compute is None or name in argument_names(compute)


def _of_rewards(knob: Knob, loss_type: LossType) -> bool:
    """Whether only the policy gradient reads the setting, and not this other loss.

    Pairs always have two answers. Without a gold score, the weighted rewards label them.
    """
    if loss_type in VALUE_LOSSES:
        return knob.group not in ("algorithm", "sampling") and knob.name not in _OF_VALUES
    if knob.name == "beta":
        return loss_type in IMITATIONS or loss_type == "reward"
    if knob.name == "reward_weights":
        return False
    of_an_axis = knob.group == "update" and knob.needs is not None and knob.needs[0] in CHOICES
    own = knob.group in ("credit", "objective", "distillation")
    return own or of_an_axis or knob.name in ("num_generations", "dynamic_sampling")
