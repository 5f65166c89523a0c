"""A screen steers a trainer over a real socket; the trainer here only counts."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from rlplay.link import framing
from rlplay.link import trainer_address as remote
from rlplay.link.messages import (
    Advance,
    EndProbe,
    Failed,
    Pause,
    Set,
)
from rlplay.link.trainer_address import NoDoorError, find
from rlplay.trace.questions import Weigh, refusal
from rlplay.trace.rehearsals import Rehearse
from rlplay.trace.teachers import TakeAway, Target, Taught, Teach, TeachCourse

pytest.importorskip("transformers")
from rlplay.record.trl.change import GIVEN, SAMPLING, change
from rlplay.record.trl.questions import NO_COURSE, NO_OTHER_UPDATE, NO_REHEARSAL, ONLY_TEACHERS
from rlplay.record.trl.steering import TAKEN
from tests.record.fake_trainer import PATIENCE, Trainer
from tests.record.screen import Screen


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[Trainer]:
    made = Trainer(tmp_path)
    yield made
    made.end()


def test_pause_step_change_run(trainer: Trainer, tmp_path: Path) -> None:
    screen = Screen(tmp_path)
    assert screen.status().running
    screen.say(Pause())
    at = screen.status(running=False).update
    screen.say(Advance("update"))
    assert screen.status(running=False, update=at + 1)
    screen.say(Advance("update", 3))
    assert screen.status(running=False, update=at + 4)
    assert trainer.updates == at + 4
    screen.say(Set({"learning_rate": 0.5, "beta": 0.25}))
    assert screen.status(settings={"learning_rate": 0.5, "beta": 0.25}).update == at + 4
    screen.say(Advance("forever"))
    assert screen.status(running=True).settings["beta"] == 0.25
    trainer.goes_on()
    assert trainer.changes == [(at + 4, {"learning_rate": 0.5, "beta": 0.25})]


def test_a_refused_setting_is_a_notice_at_once_and_the_others_hold(trainer: Trainer, tmp_path: Path) -> None:
    screen = Screen(tmp_path)
    screen.say(Pause())
    screen.status(running=False)
    screen.say(Set({"beta": -1.0, "learning_rate": 0.5}))
    assert screen.notice() == "beta stays as it is: it is never below 0."
    assert screen.status().settings == {"learning_rate": 0.5, "beta": 0.0}
    screen.say(Advance("forever"))
    trainer.goes_on()
    assert [changes for _, changes in trainer.changes] == [{"learning_rate": 0.5}]


def test_settings_change_while_it_runs(trainer: Trainer, tmp_path: Path) -> None:
    screen = Screen(tmp_path)
    screen.say(Set({"learning_rate": 0.5}))
    assert screen.status(settings={"learning_rate": 0.5, "beta": 0.0}).running


def test_inside_an_update_it_neither_pauses_nor_changes(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path, steps=4)
    screen = Screen(tmp_path)
    screen.say(Pause())
    screen.status(running=False)
    assert trainer.calls % 4 == 0
    screen.say(Set({"beta": 0.5}), Advance("update"))
    at = screen.status(running=False, settings={"learning_rate": 0.1, "beta": 0.5})
    screen.status(running=False, update=at.update + 1)
    assert trainer.calls == 4 * (at.update + 1)
    screen.say(Advance("forever"))
    trainer.end()


def test_questions_are_answered_also_while_it_waits(trainer: Trainer, tmp_path: Path) -> None:
    screen, target = Screen(tmp_path), Target([1], [2], [0])
    screen.say(Teach(target, 1, 1))
    answer = screen.answer()
    assert isinstance(answer, Taught)
    assert (answer.target, answer.steps) == (target, 1)
    screen.say(Pause())
    at = screen.status(running=False).update
    for question, reason in (
        (TeachCourse(target), NO_COURSE),
        (TakeAway(target, 1, [0]), NO_OTHER_UPDATE),
        (Rehearse(at, 1, [{}]), NO_REHEARSAL),
        (Weigh(1), ONLY_TEACHERS),
    ):
        screen.say(question)
        assert screen.answer() == refusal(question, reason)
    assert trainer.updates == at
    screen.socket.close()
    trainer.goes_on()
    assert trainer.answers.left == 1


def test_a_screen_that_leaves_lets_a_paused_training_run(trainer: Trainer, tmp_path: Path) -> None:
    for _ in range(3):
        screen = Screen(tmp_path)
        screen.say(Pause())
        screen.status(running=False)
        screen.socket.close()
        trainer.goes_on()


def test_the_next_screen_may_pause_at_once(trainer: Trainer, tmp_path: Path) -> None:
    first = Screen(tmp_path)
    first.status()
    first.socket.close()
    trainer.goes_on()
    second = Screen(tmp_path)
    second.say(Pause())
    assert second.status(running=False).update == trainer.updates


def test_without_the_token_nothing_is_heard_and_nothing_obeyed(trainer: Trainer, tmp_path: Path) -> None:
    for token in ("", "wrong", "x" * 300, find(tmp_path).token[:-1]):
        stranger = Screen(tmp_path, token)
        try:
            stranger.say(Pause())
            assert stranger.hear() is None
        except OSError:  # it has hung up already
            pass
        trainer.goes_on()


def test_who_says_nothing_keeps_nobody_out(trainer: Trainer, tmp_path: Path) -> None:
    door = find(tmp_path)
    with socket.create_connection((door.host, door.port), PATIENCE):
        assert Screen(tmp_path).status().running


def test_a_second_screen_is_told_to_wait(trainer: Trainer, tmp_path: Path) -> None:
    first = Screen(tmp_path)
    first.status()
    second = Screen(tmp_path)
    assert second.hear() == Failed(TAKEN)
    assert second.hear() is None
    first.say(Pause())
    assert first.status(running=False)
    first.socket.close()
    trainer.goes_on()


def test_a_screen_that_no_longer_reads_is_let_go(trainer: Trainer, tmp_path: Path) -> None:
    screen = Screen(tmp_path)
    screen.status()
    trainer.settings["algorithm"] = "x" * 1_000_000  # fills the socket in a few updates
    trainer.goes_on(25)
    del trainer.settings["algorithm"]
    assert Screen(tmp_path).status().running


def test_nonsense_is_not_obeyed(trainer: Trainer, tmp_path: Path) -> None:
    screen = Screen(tmp_path)
    screen.socket.sendall(framing.pack(b"nonsense") + framing.pack(b""))
    screen.say(EndProbe(), Advance("token"), Pause())
    assert screen.status(running=False).abilities is not None
    screen.socket.sendall((2**31).to_bytes(4, "big"))
    trainer.goes_on()


def test_only_this_user_can_read_the_token_and_the_end_takes_it_away(tmp_path: Path) -> None:
    trainer = Trainer(tmp_path)
    screen = Screen(tmp_path)
    screen.status()
    assert stat.S_IMODE((tmp_path / "remote.json").stat().st_mode) == 0o600
    door = find(tmp_path)
    trainer.end()
    screen.status(finished=True)
    with pytest.raises(NoDoorError, match="does not listen"):
        find(tmp_path)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((door.host, door.port), PATIENCE)


def test_the_address_is_there_only_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError("no rename")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(OSError, match="no rename"):
        remote.listen(tmp_path)
    assert not (tmp_path / "remote.json").exists()


def test_a_forwarded_port_and_a_broken_file(tmp_path: Path) -> None:
    server, door = remote.listen(tmp_path)
    server.close()
    assert find(tmp_path, 7000) == remote.Door("127.0.0.1", 7000, door.token)
    for host in ("127.0.0.2", "evil.example"):
        (tmp_path / "remote.json").write_bytes(msgspec.json.encode(remote.Door(host, 7000, door.token)))
        assert find(tmp_path) == remote.Door("127.0.0.1", 7000, door.token), "a screen connects to its own machine"
    command = remote.Door("127.0.0.1", 6379, "\r\nFLUSHALL\r\n" + door.token)
    for broken in (b'{"host": 1}', msgspec.json.encode(command)):
        (tmp_path / "remote.json").write_bytes(broken)
        with pytest.raises(NoDoorError, match="copy it again"):
            find(tmp_path)


def fake_trl(beta: float = 0.0, reference: object = None) -> Any:
    """What `change` touches of a trainer; the schedule is at half of its peak."""
    return SimpleNamespace(
        args=SimpleNamespace(learning_rate=0.1, beta=beta, epsilon=0.2, epsilon_high=None, reward_weights=None),
        optimizer=SimpleNamespace(param_groups=[{"lr": 0.05, "initial_lr": 0.1}, {"lr": 0.05, "initial_lr": 0.1}]),
        lr_scheduler=SimpleNamespace(base_lrs=[0.1, 0.1]), beta=beta, ref_model=reference, epsilon_low=0.2,
        epsilon_high=0.2, reward_func_names=["a"], model=object(),
        accelerator=SimpleNamespace(unwrap_model=lambda model: model),
    )  # fmt: skip


def test_the_learning_rate_is_the_peak_of_the_schedule() -> None:
    trainer = fake_trl()
    assert change(trainer, "learning_rate", 0.2) == ""
    assert trainer.optimizer.param_groups == [{"lr": 0.1, "initial_lr": 0.2}] * 2
    assert trainer.lr_scheduler.base_lrs == [0.2, 0.2]
    assert trainer.lr_scheduler._last_lr == [0.1, 0.1], "TRL's log of the next update names the rate that it had"
    assert trainer.args.learning_rate == 0.2


def test_one_epsilon_bounds_both_sides_until_there_are_two() -> None:
    trainer = fake_trl()
    for name, value, found in (
        ("epsilon", 0.1, (0.1, 0.1)),
        ("epsilon_high", 0.3, (0.1, 0.3)),
        ("epsilon", 0.2, (0.2, 0.3)),
        ("epsilon_high", None, (0.2, 0.2)),
        ("epsilon", 0.5, (0.5, 0.5)),
    ):
        assert change(trainer, name, value) == ""
        assert (trainer.epsilon_low, trainer.epsilon_high) == found


def test_beta_needs_a_reference() -> None:
    without, reference = fake_trl(), fake_trl(0.1, object())
    assert "no reference model" in change(without, "beta", 0.1)
    assert (without.beta, without.args.beta) == (0.0, 0.0)
    for value in (0.0, 0.2):
        assert change(reference, "beta", value) == ""
        assert reference.beta == value
    without.model = SimpleNamespace(disable_adapter=None)
    assert change(without, "beta", 0.1) == ""


def test_what_trl_keeps_from_the_beginning_is_refused() -> None:
    assert "reads temperature only when training begins" in change(fake_trl(), "temperature", 0.5)
    assert "name the reward functions: a" in change(fake_trl(), "reward_weights", {"b": 1.0})
    assert "temperature" not in SAMPLING + GIVEN
