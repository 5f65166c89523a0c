"""What to do about a folder whose files do not hold the answers of a run: each trainer can be told to keep them."""

from __future__ import annotations

from pathlib import Path

_HINTS = (
    (("iteration_*/train_logtree.json", "iteration_*/train.html"),
     "tinker-cookbook's reports, which do not say which reward belongs to which answer; rollout_json_export=True and "
     "token_db=TokenDbConfig() in its Config write what rlplay reads"),
    (("global_step_*/actor",),
     "verl's checkpoints and no answers; actor_rollout_ref.model.external_lib=rlplay.record.verl records the run, and "
     "trainer.rollout_data_dir=FOLDER writes its texts"),
    (("exp_*/train_data_step*.jsonl",),
     "the log folders of several runs of NeMo-RL; give one of them, such as exp_001"),
    (("step_*/policy/weights", "step_*/training_info.json"),
     "NeMo-RL's checkpoints and no answers; its log folder, logger.log_dir, has them in train_data_step*.jsonl"),
    (("[0-9]*_[0-9]*.pt", "[0-9]*.pt", "train_data/*.pt", "rollout_data/eval_*.pt"),
     "a part of what slime or miles dump; give the folder that they got as --dump-details, with rollout_data in it"),
    (("latest_checkpointed_iteration.txt", "iter_*/common.pt", "dashboard/*.jsonl"),
     "checkpoints or curves of Megatron, slime or miles and no answers; --dump-details FOLDER writes them"),
    (("dumped_evals", "global_step_*_evals", "global_step_*/policy", "*_evals/aggregated_results.jsonl"),
     "SkyRL's checkpoints or evaluations and no training batches; trainer.dump_data_batch=true writes these to "
     "dumped_data in trainer.export_path"),
    (("*_trainer_logprobs_step*.jsonl", "*_filtered_rollouts_*.jsonl", "*_metadata.jsonl"),
     "a part of what open-instruct writes and no rollouts; --save_traces with --rollouts_save_path writes them"),
    (("broadcasts/step_*", "checkpoints/step_*", "configs/**/orchestrator.*", "rollouts/step_*/train_rollouts.bin"),
     "a run of prime-rl without traces; [monitors.file] in its configuration writes them"),
    (("_actor/global_step*", "*/_actor/global_step*"),
     "OpenRLHF's checkpoints; it writes no file with answers, so record them with rlplay.record, as "
     "docs/other-trainers.md shows"),
)  # fmt: skip
"""Files by which a folder is known, and what they hold."""


def lacking(folder: Path) -> str:
    """What the folder holds, and how it could hold a run that rlplay reads, for after "holds"."""
    for patterns, hint in _HINTS:
        if any(any(folder.glob(pattern)) for pattern in patterns):
            return hint
    return "no run that rlplay can read; docs/other-trainers.md lists what it can"
