"""Records a run of verl: its trainer imports this package, and that is all.

`actor_rollout_ref.model.external_lib=rlplay.record.verl` on verl's command line imports it in the trainer that verl 0.9
uses by default, and the environment variable `VERL_USE_EXTERNAL_MODULES=rlplay.record.verl` in any. `hook.py` waits for
the trainers to be imported, `batches.py` reads what they trained on, `options.py` translates verl's configuration, and
`compat.py` has the undocumented names that are used.
"""

from rlplay.record.verl.hook import install

install()
