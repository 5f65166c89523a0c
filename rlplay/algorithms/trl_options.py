"""Options of TRL 1.16's trainers that change a loss or what is sampled: what they are here, or why they are refused.

A name is an option of every trainer that has it, or `Trainer.option` where it means something else in one of them. An
option that is a setting of the same name, and means the same, is in none of these. `python -m tests.parity.trl_options`
writes the table of the documentation from TRL's own classes.
"""

from __future__ import annotations

HERE: dict[str, str] = {
    "steps_per_generation": "num_minibatches",
    "generation_batch_size": "num_prompts",
    "max_new_tokens": "max_completion_length",
    "vllm_importance_sampling_mode": "importance_sampling_mode",
    "vllm_importance_sampling_correction": "importance_sampling_mode, none where it is off",
    "vllm_importance_sampling_clip_max": "importance_sampling_clip_max",
    "vllm_importance_sampling_clip_min": "importance_sampling_clip_min",
    "vllm_importance_sampling_cap": "importance_sampling_clip_max, as in TRL, whose older name it is",
    "use_vllm": "sampler_dtype, sampler_lag and logprobs_mode, which make what vLLM does to log-probabilities",
    "vllm_sync_frequency": "weight_sync_steps",
    "reward_clip_range": "reward_clip_min and reward_clip_max",
    "normalize_advantages": "scale_rewards=answers",
    "loss_type": "loss_type; for rewards surrogate with aggregation",
    "disable_dropout": "always on: policy and reference run without dropout",
    "cast_lm_head_to_fp32": "--dtype float32; log-probabilities are float32 whatever the weights are",
    "chat_template_kwargs": "chat_template_kwargs of a scenario",
    "completion_only_loss": "always on: prompts are not imitated",
    "assistant_only_loss": "always on: what a user or a tool wrote is not imitated",
    "model_init_kwargs": "--dtype",
    "max_length": "max_completion_length, where given answers end",
    "truncation_mode": "always keep_start, which is TRL's only mode that stays",
    "teacher_model_name_or_path": "teacher of a scenario, or --teacher",
    "teacher_prompt_template": "teacher_prompt_template of a scenario",
    "reprompt_template": "teacher_prompt_template of a scenario, which holds the solution too",
    "solution_template": "teacher_prompt_template of a scenario",
    "use_successful_as_teacher": "teacher_context=group",
    "dont_reprompt_on_self_success": "always on: no answer is shown to its own teacher",
    "teacher_temperature": "temperature, which divides the logits of both",
    "teacher_top_k": "distillation_topk",
    "loss_top_k": "distillation_topk; 0 is distillation_mode=full_logits",
    "loss_add_tail": "distillation_add_tail",
    "add_tail_bucket": "distillation_add_tail",
    "distillation_objective": "distillation_mode: advantage for iw_opd, full_logits for jsd",
    "iw_opd_epsilon": "always 1e-8, TRL's default",
    "DistillationTrainer.beta": "distillation_alpha", "ServerDistillationTrainer.beta": "distillation_alpha",
    "AsyncDistillationTrainer.beta": "distillation_alpha", "GKDTrainer.beta": "distillation_alpha",
    "GOLDTrainer.beta": "distillation_alpha", "IWOPDTrainer.beta": "distillation_alpha",
    "GMPOTrainer.router_aux_loss_coef": "router_aux_loss_coef; TRL's GMPOTrainer inherits it and reads it nowhere",
    "GKDTrainer.router_aux_loss_coef": "router_aux_loss_coef; TRL's GKDTrainer inherits it and reads it nowhere",
    "GOLDTrainer.router_aux_loss_coef": "router_aux_loss_coef; TRL's GOLDTrainer inherits it and reads it nowhere",
    "reward_model_path": "a stage of algorithm reward-model, or a reward function that loads the model",
}  # fmt: skip
"""What an option is called here: a setting, or in words what has the same effect."""

_SERVER = "rlplay talks to no server of another model; give the teacher's folder"
_TOKENIZERS = "teacher and student share their tokens here; a teacher with another tokenizer is not compared"
_TRIPLES = "a comparison has two answers; TPO adds a third, the gold one"
_FEEDBACK = "an environment's words reach the policy in its turns, not the teacher's prompt"
_STAGES = "A2PO estimates V* from samples that are drawn before the training; no stage of rlplay does"

REFUSED: dict[str, str] = {
    "vllm_structured_outputs_regex": "sampling follows no grammar; a reward function can judge the form",
    "generation_kwargs": "each way of sampling is a setting of its own, such as top_p, min_p or repetition_penalty",
    "num_value_samples": _STAGES, "beta1": _STAGES, "beta2": _STAGES, "filter_all_incorrect": _STAGES,
    "teacher_tokenizer_name_or_path": _TOKENIZERS, "use_uld_loss": _TOKENIZERS, "use_extended_uld": _TOKENIZERS,
    "uld_token_merge_strategy": _TOKENIZERS, "uld_use_hybrid_loss": _TOKENIZERS,
    "uld_hybrid_matched_weight": _TOKENIZERS, "uld_hybrid_unmatched_weight": _TOKENIZERS,
    "uld_crossentropy_weight": _TOKENIZERS, "uld_distillation_weight": _TOKENIZERS,
    "uld_student_temperature": _TOKENIZERS, "uld_teacher_temperature": _TOKENIZERS,
    "uld_skip_student_eos": _TOKENIZERS, "uld_skip_teacher_eos": _TOKENIZERS,
    "max_prompt_length": "a prompt is never cut: what does not fit is refused in one line",
    "max_reprompt_len": "a prompt is never cut: what does not fit is refused in one line",
    "missing_eos_penalty": "a reward function of your own can take it off",
    "lmbda": "every answer is the policy's own, as with 1",
    "seq_kd": "the teacher writes no answers; imitate a file of them with algorithm sft",
    "generate_from_teacher": "every answer is the policy's own, to its own prompt",
    "num_loss_tokens_to_skip": "every sampled token counts",
    "reverse_kl_top_1_mode": "distillation_mode=sampled_token reads the sampled token; argmax is not there",
    "fork_threshold_tokens": "an episode is one row: retokenize_turns trains on all of its text",
    "tpo_alpha": _TRIPLES, "tpo_l_gamma": _TRIPLES,
    "remove_thinking_from_demonstration": "a successful answer is shown to the teacher as it is",
    "feedback_template": _FEEDBACK, "include_environment_feedback": _FEEDBACK,
    "environment_feedback_only_without_solution": _FEEDBACK,
    "teacher_model_server_url": _SERVER, "teacher_server_urls": _SERVER, "use_teacher_server": _SERVER,
}  # fmt: skip
"""Why an option is not here, in half a sentence."""

OUTSIDE = frozenset((
    "activation_offloading", "cache_implementation", "callbacks", "chat_template_path", "dataset_kwargs",
    "dataset_num_proc", "dataset_text_field", "diagnostics_flat_tolerance", "diagnostics_warning_interval",
    "ds3_gather_for_generation", "dtype", "eos_token", "eval_packing", "generate_during_eval",
    "heartbeat_stale_after_s", "is_encoder_decoder", "log_completions", "log_completions_hub_repo",
    "log_completions_steps", "log_multimodal", "log_unique_prompts", "max_inflight_tasks",
    "num_completions_to_print", "num_generations_eval", "packing", "packing_strategy", "pad_to_multiple_of",
    "pad_token", "padding_free", "padding_value", "precompute_ref_batch_size", "precompute_ref_log_probs",
    "queue_maxsize", "request_timeout", "shuffle_dataset", "teacher_model_init_kwargs", "teacher_model_revision",
    "token_budget", "transformers_continuous_batching_config", "trust_remote_code",
    "use_transformers_continuous_batching", "use_transformers_paged", "vllm_enable_sleep_mode",
    "vllm_gpu_memory_utilization", "vllm_group_port", "vllm_max_model_length", "vllm_mode", "vllm_model_impl",
    "vllm_server_base_url", "vllm_server_host", "vllm_server_port", "vllm_server_timeout",
    "vllm_tensor_parallel_size", "wandb_log_unique_prompts", "weight_sync_timeout",
))  # fmt: skip
"""Options of data, logging, servers and memory, which change neither a loss nor what is sampled."""


def said_of(option: str) -> str:
    """An option of TRL that is no setting here: what it is called here, or why it is refused; "" for other words."""
    if option in REFUSED:
        return f"TRL's {option} is not there: {REFUSED[option]}"
    if option in HERE:
        return f"TRL's {option} is here: {HERE[option]}"
    return f"TRL's {option} changes neither a loss nor what is sampled" if option in OUTSIDE else ""
