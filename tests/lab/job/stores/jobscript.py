"""What a user submits: the batch script, and the environment that the scheduler gave the job."""

from pathlib import Path

import common
from facts import JOB, WORLD

from stores._turns import turn

_SCRIPT = """#!/bin/bash
#SBATCH --job-name=chain
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={world}
#SBATCH --cpus-per-task=8
#SBATCH --mem=64G
#SBATCH --time=02:00:00
#SBATCH --output=slurm-%j.out

set -euo pipefail
module load python/3.11
source .venv/bin/activate
export OMP_NUM_THREADS=1
{export}
srun {launch} train.py --steps {steps} --lr {lr} --batch-size {batch_size} --save-every {save_every} --seed {seed}
"""


class Store:
    def start(self, config):
        job = 4000 + JOB["number"]
        launch = f"torchrun --nproc-per-node={WORLD}" if WORLD > 1 else "python"
        export = "export TORCH_NCCL_ASYNC_ERROR_HANDLING=1\nexport NCCL_DEBUG=WARN" if WORLD > 1 else ""
        keys = {
            "lr": common.BASE_LR,
            "batch_size": common.BATCH,
            "world": WORLD,
            "launch": launch,
            "export": export,
            "seed": JOB["seed"],
        } | config
        Path("run.sbatch").write_text(_SCRIPT.format(**keys, save_every=JOB["save_every"]))
        if turn("environment", True, False):
            variables = {
                "SLURM_JOB_ID": job, "SLURM_JOB_NAME": "chain", "SLURM_JOB_NODELIST": "node07", "SLURM_NNODES": 1,
                "SLURM_NTASKS": 1, "SLURM_GPUS_ON_NODE": WORLD, "SLURM_CPUS_PER_TASK": 8, "SLURM_RESTART_COUNT": 0,
                "OMP_NUM_THREADS": 1, "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(WORLD))),
            }  # fmt: skip
            Path("environment.txt").write_text("".join(f"{key}={value}\n" for key, value in sorted(variables.items())))

    def write(self, step, values):
        """Nothing: it is written once."""
