"""Every option of TRL's trainers works, or is refused by name with a reason, and the documentation says which."""

from __future__ import annotations

import pytest

from rlplay.algorithms.knobs import KNOBS, OTHER_NAMES
from rlplay.algorithms.setting_values import check, unknown
from rlplay.algorithms.trl_options import HERE, OUTSIDE, REFUSED
from tests.parity.trl_options import PAGE, page, trainers

pytest.importorskip("trl")


def test_the_page_is_what_trl_and_the_code_say() -> None:
    assert PAGE.read_text() == page(), "python -m tests.parity.trl_options writes it anew"


def test_every_entry_is_an_option_that_some_trainer_has() -> None:
    every = {option for options in trainers().values() for option in options}
    of_one = {f"{trainer}.{option}" for trainer, options in trainers().items() for option in options}
    assert {*HERE, *REFUSED, *OUTSIDE} <= every | of_one
    assert not set(HERE) & set(REFUSED)
    assert not {*HERE, *REFUSED} & OUTSIDE


def test_what_an_option_is_called_here_exists() -> None:
    words = {word.split("=")[0].rstrip(",;:") for said in HERE.values() for word in said.split() if "_" in word}
    in_scenarios = {"chat_template_kwargs", "teacher_prompt_template"}
    of_trl = {"keep_start", "full_logits", "iw_opd"}
    assert words - in_scenarios - of_trl <= set(KNOBS)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("use_uld_loss", "another tokenizer is not compared"),
        ("loss_top_k", "distillation_topk"),
        ("vllm_server_port", "changes neither a loss nor what is sampled"),
    ],
)
def test_a_setting_with_a_name_of_trls_is_told_apart_from_a_slip(name: str, said: str) -> None:
    assert said in unknown(name)
    assert "did you mean" not in unknown(name)


def test_an_option_with_another_name_here_is_led_there() -> None:
    knob, (other, *_) = next((knob, names) for knob, names in OTHER_NAMES.items() if "normalize_advantages" in names)
    assert f"did you mean {knob!r}" in unknown(other)


@pytest.mark.parametrize(("name", "word", "hint"), [
    ("loss_type", "dapo", "algorithm=dapo"), ("loss_type", "dr_grpo", "algorithm=dr-grpo"),
    ("importance_sampling_mode", "IcePop", "algorithm=icepop"), ("loss_type", "sigmoid,sft", "loss_weights adds up"),
    ("min_p", "none", "0, the default, is none"),
])  # fmt: skip
def test_a_word_of_trl_that_is_no_value_leads_to_what_it_is_here(name: str, word: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"; .*{hint}"):
        check(name, word)


def test_the_passes_of_trls_ppo_trainer_are_found() -> None:
    assert "did you mean 'num_iterations'" in unknown("num_ppo_epochs")
