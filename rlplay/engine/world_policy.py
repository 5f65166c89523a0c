"""Policies for tiny worlds: a table of moves, or a small network, as causal language models of transformers.

They look at the last token only: the square or situation that the environment has just named. So the engine samples,
scores and trains them like any other language model, and they save and load like one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    DynamicCache,
    GenerationConfig,
    GenerationMixin,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_outputs import CausalLMOutputWithPast

from rlplay.worlds.world import HIDDEN, World, place

WIDTH = 32
"""Hidden units of the network, as in the example that `pick-two` retells."""
_IMPOSSIBLE = -1e4
"""Logit of every token that is not a move; its probability is 0 in float32."""
_PAD = "·"


class WorldPolicyConfig(PretrainedConfig):  # type: ignore[misc]
    """The tokens `0 … num_actions - 1` are moves; `feature_size` numbers describe each token; `width` 0 is a table.

    `exploration_rate` is ε where the outputs are Q(s, ·) and the policy is ε-greedy; None: they are logits.
    """

    model_type = "rlplay-world"

    def __init__(
        self,
        vocab_size: int = 2,
        num_actions: int = 1,
        feature_size: int = 2,
        width: int = 0,
        exploration_rate: float | None = None,
        **others: Any,
    ) -> None:
        self.vocab_size, self.num_actions = vocab_size, num_actions
        self.feature_size, self.width = feature_size, width
        self.exploration_rate = exploration_rate
        self.hidden_size = width or feature_size
        super().__init__(**others)


class WorldPolicy(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """logits = head(hidden(features of the last token)).

    Of a table, the features are one-hot and the hidden state is the features: each token has its own row of logits,
    and a value head without a bias on the hidden state is a table V(s). Of a network, hidden = ReLU(W·features + b).
    """

    config_class = WorldPolicyConfig

    def __init__(self, config: WorldPolicyConfig) -> None:
        super().__init__(config)
        self.features = nn.Embedding(config.vocab_size, config.feature_size)
        self.features.weight.requires_grad_(False)
        self.layer = nn.Linear(config.feature_size, config.width) if config.width else None
        self.head = nn.Linear(config.hidden_size, config.num_actions, bias=bool(config.width))
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """What a token is described by; it is not trained."""
        return self.features

    def get_output_embeddings(self) -> nn.Linear:
        """The layer with one output per move."""
        return self.head

    def forward(
        self,
        input_ids: Tensor,
        past_key_values: Any = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
        output_hidden_states: bool = False,
        **_kwargs: Any,
    ) -> CausalLMOutputWithPast:
        """Logits [B, T, V] after each token of `input_ids` [B, T]; nothing before the last token counts."""
        ids = input_ids[:, -logits_to_keep:] if logits_to_keep else input_ids
        hidden = self.features(ids if not output_hidden_states else input_ids)
        if self.layer is not None:
            hidden = self.layer(hidden).relu()
        moves = self.head(hidden[:, -ids.shape[1] :])
        if self.config.exploration_rate is not None:
            moves = epsilon_greedy(moves, self.config.exploration_rate).log().clamp(min=_IMPOSSIBLE)
        others = self.config.vocab_size - self.config.num_actions
        return CausalLMOutputWithPast(
            logits=nn.functional.pad(moves, (0, others), value=_IMPOSSIBLE),
            past_key_values=(DynamicCache() if past_key_values is None else past_key_values) if use_cache else None,
            hidden_states=(hidden,) if output_hidden_states else None,
        )


def is_table(policy: nn.Module) -> bool:
    """Whether every square has a row of its own, so that training changes nothing where no episode has been."""
    return isinstance(policy, WorldPolicy) and policy.layer is None


def epsilon_greedy(values: Tensor, epsilon: float) -> Tensor:
    """The ε-greedy policy of action values, both [..., A]: ε/A for every move, and 1 − ε shared by the best ones."""
    best = values == values.max(-1, keepdim=True).values
    return epsilon / values.shape[-1] + (1 - epsilon) * best / best.sum(-1, keepdim=True)


def register() -> None:
    """Let transformers load such a policy from a folder."""
    AutoConfig.register(WorldPolicyConfig.model_type, WorldPolicyConfig, exist_ok=True)
    AutoModelForCausalLM.register(WorldPolicyConfig, WorldPolicy, exist_ok=True)


def world_policy(world: World, kind: str, seed: int) -> tuple[WorldPolicy, PreTrainedTokenizerFast]:
    """An untrained policy for `world`: a "table", which starts uniform, or an "mlp", drawn with `seed`."""
    tokens = [*world.actions, *world.states, HIDDEN, _PAD]
    features = torch.eye(len(tokens)) if kind == "table" else _described(world, tokens, seed)
    config = WorldPolicyConfig(len(tokens), len(world.actions), features.shape[1], 0 if kind == "table" else WIDTH)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        policy = WorldPolicy(config)
    with torch.no_grad():
        policy.features.weight.copy_(features)
        if kind == "table":
            policy.head.weight.zero_()
    policy.generation_config = GenerationConfig(
        eos_token_id=list(range(len(world.actions))), pad_token_id=len(tokens) - 1, use_cache=False
    )
    return policy, _tokenizer(tokens)


def _described(world: World, tokens: list[str], seed: int) -> Tensor:
    """Two numbers for each token [V, 2]: where a square is, from −1 to 1; of a bandit's situations, random ones."""
    features = torch.zeros(len(tokens), 2)
    if world.arms:
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(len(world.states), 2, generator=generator)
    else:
        height, width = (max(len(side) - 1, 1) for side in (world.map, world.map[0]))
        drawn = torch.tensor([(2 * r / height - 1, 2 * c / width - 1) for r, c in map(place, world.states)])
    first = len(world.actions)
    features[first : first + len(world.states)] = drawn
    return features


def _tokenizer(tokens: list[str]) -> PreTrainedTokenizerFast:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    backend = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token=_PAD))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("[a-z][0-9]+|."), "isolated")
    backend.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token=_PAD, padding_side="left")
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return tokenizer
