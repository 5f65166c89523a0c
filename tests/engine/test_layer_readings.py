"""The logit lens and the embedding's neighbours: the numbers of the model's own norm, head and embedding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from rlplay.engine.driver import Driver
from rlplay.engine.layer_readings import CANDIDATES, layer_logprobs
from rlplay.trace.questions import LayersRead, Neighbours, NeighboursFound, Peek, Prefix, ReadLayers
from rlplay.trace.records import AnyRecord
from tests.engine import architectures
from tests.engine.conftest import ARCHITECTURES
from tests.engine.test_probe import ASKED, ask, never
from tests.worlds.value_run import SMALL, Run

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
PLACE, TOKEN = Prefix(ASKED, [70]), 71


@pytest.mark.parametrize("architecture", [name for name in architectures.SIZES if name != "bert"])
def test_the_last_layer_says_what_the_model_says(architecture: str) -> None:
    model = architectures.make(architecture, 60, pad_token_id=0, eos_token_id=1, bos_token_id=2).eval()
    ids = [5, 6, 7, 8, 9]
    read = layer_logprobs(model, {}, ids, 0.8)
    with torch.no_grad():
        own = (model(torch.tensor([ids])).logits[0, -1] / 0.8).log_softmax(-1)
    assert read.shape == ((5 if architecture == "zamba2" else 3), 60)
    np.testing.assert_allclose(read[-1], own, atol=1e-5)
    assert float((read[0] - read[-1]).abs().max()) > 1e-3, "the layers change something"
    with torch.no_grad():
        again = (model(torch.tensor([ids])).logits[0, -1] / 0.8).log_softmax(-1)
    assert torch.equal(own, again), "no hook stays behind"


@pytest.mark.parametrize(("architecture", "norm"), [("llama", "norm"), ("qwen2", "norm"), ("gpt2", "ln_f")])
def test_layers_are_read_through_the_final_norm_and_the_head(architecture: str, norm: str) -> None:
    model = architectures.make(architecture, 60, pad_token_id=0, eos_token_id=1, bos_token_id=2).eval()
    read = layer_logprobs(model, {}, [5, 6, 7], 1.0)
    model = model.double()
    with torch.no_grad():
        out = model(torch.tensor([[5, 6, 7]]), output_hidden_states=True)
        normed = getattr(model.base_model, norm)(torch.stack(out.hidden_states[:-1])[:, 0, -1])
        expected = model.get_output_embeddings()(normed).log_softmax(-1)
    np.testing.assert_allclose(read[:-1], expected, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_before_and_after_an_update(start: Start, architecture: str) -> None:
    driver, _ = start(architecture=architecture, learning_rate=2e-2, temperature=0.7)
    driver.advance("update", 1, never)
    before = ask(driver, Peek(PLACE))
    driver.advance("update", 1, never)
    after = ask(driver, Peek(PLACE))
    answer = ask(driver, ReadLayers(PLACE, TOKEN, 2))
    assert isinstance(answer, LayersRead)
    assert (answer.since, answer.update, len(answer.before), len(answer.after)) == (1, 2, 3, 3)
    for peeked, reading in ((before, answer.before[-1]), (after, answer.after[-1])):
        assert len(reading.top_ids) == len(reading.top) == CANDIDATES
        assert reading.top_ids[0] == peeked.top_ids[0]
        shares = dict(zip(peeked.top_ids, peeked.top, strict=True))
        for token, share in zip(reading.top_ids, reading.top, strict=True):
            assert share == pytest.approx(shares.get(token, share), abs=1e-5)
    assert answer.before != answer.after
    assert set(answer.pieces) >= {TOKEN, *answer.after[0].top_ids}


def test_the_written_token_has_its_probability_and_its_rank(start: Start) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    first = ask(driver, ReadLayers(PLACE, TOKEN, 1)).after[-1]
    best = ask(driver, ReadLayers(PLACE, first.top_ids[2], 1)).after[-1]
    assert (best.rank, best.written) == (3, first.top[2])


def test_what_cannot_be_read_is_refused_in_a_line(start: Start, tmp_path: Path) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    for question in (ReadLayers(PLACE, 10**6, 1), Neighbours(10**6, 1)):
        with pytest.raises(ValueError, match="outside the model's vocabulary"):
            ask(driver, question)
    with pytest.raises(ValueError, match="more than the"):
        ask(driver, ReadLayers(Prefix(ASKED, [70] * 600), TOKEN, 1))
    with pytest.raises(ValueError, match="were not kept"):
        ask(driver, ReadLayers(PLACE, TOKEN, 7))
    run = Run(tmp_path, SMALL, settings={"algorithm": "reinforce"}).go(1)
    with pytest.raises(ValueError, match="has no layers between"):
        ask(run.driver, ReadLayers(Prefix("a1"), 0, 1))
    with pytest.raises(ValueError, match="learns no embedding"):
        ask(run.driver, Neighbours(0, 1))


def test_weights_in_bfloat16_can_be_read() -> None:
    model = architectures.make("llama", 60, pad_token_id=0, eos_token_id=1, bos_token_id=2).eval().bfloat16()
    read = layer_logprobs(model, {}, [5, 6, 7, 8], 1.0)
    with torch.no_grad():
        own = model(torch.tensor([[5, 6, 7, 8]])).logits[0, -1].float().log_softmax(-1)
    np.testing.assert_allclose(read[-1], own, atol=0.1)


def test_a_model_that_looks_at_more_than_its_last_layer_is_not_read() -> None:
    model = architectures.make("llama", 60, pad_token_id=0, eos_token_id=1, bos_token_id=2).eval()
    model.model.norm.register_forward_hook(lambda _module, _args, output: output + output.shape[1])
    with pytest.raises(ValueError, match="more than one vector"):
        layer_logprobs(model, {}, [5, 6, 7, 8], 1.0)


def test_neighbours_are_the_nearest_by_cosine(start: Start) -> None:
    driver, _ = start(learning_rate=2e-2)
    own = driver._state.lm.policy.get_input_embeddings().weight
    tables = []
    for _ in range(2):
        driver.advance("update", 1, never)
        tables.append(normalize(own.detach().double(), dim=1))
    answer = ask(driver, Neighbours(TOKEN, 2))
    assert isinstance(answer, NeighboursFound)
    before, after = (table @ table[TOKEN] for table in tables)
    order = [i for i in after.argsort(descending=True).tolist() if i != TOKEN]
    assert answer.ids == order[:16]
    np.testing.assert_allclose(answer.after, after[answer.ids], atol=1e-5)
    np.testing.assert_allclose(answer.before, before[answer.ids], atol=1e-5)
    assert answer.turned == pytest.approx(float(tables[0][TOKEN] @ tables[1][TOKEN]), abs=1e-5)
    assert answer.turned < 1 - 1e-5
    digits = driver._state.lm.tokenizer.convert_tokens_to_ids([str(digit) for digit in range(10)])
    np.testing.assert_allclose(answer.digits, after[digits], atol=1e-5)
    assert answer.trained


def test_an_embedding_that_adapters_leave_alone_is_not_trained(start: Start) -> None:
    pytest.importorskip("peft")
    lora = {"use_peft": True, "lora_r": 2, "lora_target_modules": ["q_proj"]}
    driver, _ = start(scenario=lora, learning_rate=3e-2)
    driver.advance("update", 1, never)
    answer = ask(driver, Neighbours(TOKEN, 1))
    assert not answer.trained
    assert answer.before == answer.after
    read, peeked = ask(driver, ReadLayers(PLACE, TOKEN, 1)).after[-1], ask(driver, Peek(PLACE))
    assert (read.top_ids[0], read.top[0]) == (peeked.top_ids[0], pytest.approx(peeked.top[0], abs=1e-5))
