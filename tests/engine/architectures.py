"""The kinds of model that people bring, each as small as it gets: two layers, random weights, made from a config."""

from __future__ import annotations

from typing import Any

import torch
import transformers

_NARROW = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "initializer_range": 0.2}
_LLAMA = _NARROW | {
    "num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 128, "tie_word_embeddings": True,
}  # fmt: skip
_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "initializer_range": 0.2}
_MIXTURE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "head_dim": 8}
_STATES = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_n_groups": 1, "mamba_chunk_size": 8}
_OPT = _NARROW | {"ffn_dim": 48, "max_position_embeddings": 128, "init_std": 0.2}
_WINDOW = {"sliding_window": 4}

SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", _LLAMA),
    "qwen2": ("Qwen2", _LLAMA),
    "qwen3": ("Qwen3", _LLAMA | {"head_dim": 8}),
    "qwen3-moe": ("Qwen3Moe", _LLAMA | _MIXTURE),
    "gpt2": ("GPT2", _GPT2),
    "gpt-j": ("GPTJ", _GPT2 | {"rotary_dim": 4}),
    "gpt-neox": ("GPTNeoX", _NARROW | {"intermediate_size": 48, "max_position_embeddings": 128}),
    "gemma2": ("Gemma2", _LLAMA | {"head_dim": 8} | _WINDOW),
    "gemma3": ("Gemma3", _LLAMA | {"head_dim": 8} | _WINDOW),
    "mistral": ("Mistral", _LLAMA | _WINDOW),
    "phi3": ("Phi3", _LLAMA),
    "olmo2": ("Olmo2", _LLAMA),
    "opt": ("OPT", _OPT | {"word_embed_proj_dim": 32}),
    "opt-350m": ("OPT", _OPT | {"word_embed_proj_dim": 16, "do_layer_norm_before": False}),
    "bloom": ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.2}),
    "falcon": ("Falcon", _NARROW),
    "cohere": ("Cohere", _LLAMA),
    "granite": ("Granite", _LLAMA),
    "lfm2": ("Lfm2", _LLAMA | {"layer_types": ["conv", "full_attention"], "block_dim": 32, "conv_dim": 32}),
    "falcon-h1": ("FalconH1", _LLAMA | _STATES | {"mamba_d_ssm": 64}),
    "bamba": ("Bamba", _LLAMA | _STATES | {"attn_layer_indices": [1]}),
    "granite-hybrid": (
        "GraniteMoeHybrid",
        _LLAMA | _STATES | {"layer_types": ["mamba", "attention"], "num_local_experts": 2, "num_experts_per_tok": 1},
    ),
    "zamba2": (
        "Zamba2",
        _LLAMA
        | {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid"] * 2, "num_mem_blocks": 1, "adapter_rank": 4}
        | {"n_mamba_heads": 4, "mamba_headdim": 16, "mamba_d_state": 8, "mamba_ngroups": 1, "chunk_size": 8},
    ),
    "mamba": ("Mamba", _NARROW | {"state_size": 8}),
    "mamba2": ("Mamba2", _NARROW | {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 8}),
    "rwkv": ("Rwkv", _NARROW | {"attention_hidden_size": 32, "intermediate_size": 48, "context_length": 128}),
    "recurrent-gemma": (
        "RecurrentGemma",
        _LLAMA
        | {"head_dim": 8, "lru_width": 32, "attention_window_size": 8, "block_types": ["recurrent", "attention"]},
    ),
    "gpt-oss": ("GptOss", _LLAMA | _WINDOW | {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "bert": ("Bert", _NARROW | {"intermediate_size": 48, "max_position_embeddings": 128}),
}
"""The family in transformers and its sizes, for each architecture; all but the encoder "bert" are causal."""

_CLASSES = {"gpt2": "GPT2LMHeadModel", "bert": "BertLMHeadModel"}
_CONFIGS = {"gemma3": "Gemma3TextConfig"}


def make(architecture: str, vocabulary: int, **ids: Any) -> Any:
    """A model with the same random weights each time; `ids` are those of its special tokens."""
    family, sizes = SIZES[architecture]
    config = getattr(transformers, _CONFIGS.get(architecture, f"{family}Config"))
    kind = getattr(transformers, _CLASSES.get(architecture, f"{family}ForCausalLM"))
    torch.manual_seed(0)
    return kind(config(vocab_size=vocabulary, **sizes, **ids))
