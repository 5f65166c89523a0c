"""What an update's number is made of: every name of a trainer of TRL 1.16, rlplay's β, others' seconds."""

from __future__ import annotations

import pytest

from rlplay.trace.over_steps import over_steps

VALUES = (3.0, 7.0, 2.0)
EXPECTED = {"mean": 4.0, "sum": 12.0, "max": 7.0, "min": 2.0, "last": 2.0}
NAMES = {
    "last": """
        epoch num_tokens learning_rate kl_coef num_input_tokens_seen
    """,
    "sum": """
        step_time perf/step_s perf/fwd_s perf/fwd_bwd_s perf/optimizer_s perf/rollout_wait_s perf/weight_sync_s
        perf/weight_sync_barrier_s perf/weight_sync_pause_s perf/weight_sync_transfer_s
        timing_s/gen timing_s/update_actor timing/policy_train timing/train/policy_training time/forward_backward
        time/sampling:total
    """,
    "max": """
        clip_ratio/high_max completions/max_length completions/max_terminated_length max_reward iw_opd/max_weight
        sampling/importance_sampling_ratio/max sampling/sampling_logp_difference/max self_distillation/reward_max
        completions/student_max_length ratio_max time/sampling_time_max timing_s/agent_loop/generate_sequences/max
    """,
    "min": """
        clip_ratio/low_min completions/min_length completions/min_terminated_length min_reward iw_opd/min_weight
        sampling/importance_sampling_ratio/min self_distillation/reward_min completions/student_min_length
    """,
    "mean": """
        loss grad_norm reward reward_std rewards/correct/mean rewards/correct/std frac_reward_zero_std entropy kl
        clip_ratio/low_mean clip_ratio/high_mean clip_ratio/region_mean cispo_clip_ratio vespo/phi_seq_mean
        completions/mean_length completions/mean_terminated_length completions/clipped_ratio aux_loss entropy_coef
        completions/truncated_fraction tools/call_frequency tools/failure_frequency batch/groups_per_step
        batch/trained_tokens_per_step perf/mfu_wall_clock perf/trained_tok_s_wall_clock policy_loss mean_reward
        sampling/importance_sampling_ratio/mean sampling/sampling_logp_difference/mean accuracy margin
        mean_token_accuracy rewards/chosen rewards/rejected rewards/margins rewards/accuracies logps/chosen
        logps/rejected logits/chosen logits/rejected nll_loss log_odds_chosen log_odds_ratio iw_opd/mean_weight
        iw_opd/mean_advantage jsd teacher_entropy teacher_jsd/t teacher_token_frac/t self_distillation/reward_mean
        self_distillation/reward_std self_distillation/distillation_loss self_distillation/flat_group_fraction v_star
        ratio implicit_reward advantage
        timing_per_token_ms/gen timing/train/valid_tokens_per_sec_per_gpu time/sampling:mean time/sampling:count
        perf/time_per_step time
        self_distillation/rewards/max_words rewards/max_words/mean rewards/min_words/std
    """,
}


@pytest.mark.parametrize(("how", "name"), [(how, name) for how, names in NAMES.items() for name in names.split()])
def test_an_update_has_one_number_of_each(how: str, name: str) -> None:
    assert over_steps(name, VALUES) == EXPECTED[how]
