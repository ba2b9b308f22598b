"""W&B without a network: the run directory of `mode="offline"`."""

import os
from pathlib import Path

from facts import NOTES

# what the library keeps of the user goes elsewhere: only its run directory is the run's
_OWN = f"{NOTES}.wandb"
_SETTINGS = {
    "WANDB_MODE": "offline", "WANDB_DIR": str(Path.cwd()), "WANDB_CACHE_DIR": _OWN, "WANDB_CONFIG_DIR": _OWN,
    "WANDB_DATA_DIR": _OWN, "WANDB_ERROR_REPORTING": "false", "WANDB_DISABLE_GIT": "true", "WANDB_DISABLE_CODE": "true",
}  # fmt: skip


class Store:
    def start(self, config):
        os.environ |= _SETTINGS
        import wandb  # seconds, of which only the rank that logs pays

        self.run = wandb.init(project="chain", config=config)

    def write(self, step, values):
        self.run.log(values, step=step)

    def close(self):
        self.run.finish()
