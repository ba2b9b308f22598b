"""How many processes were started, where the settings do not say: by launcher, Slurm or environment."""

from __future__ import annotations

import polars as pl

from forensics.store.run import Run

_WORLD = ("world_size", "slurm.ntasks", "slurm_ntasks")
_PER_NODE = ("launcher.nproc_per_node", "launcher.num_gpus", "slurm.ntasks_per_node", "gpu_count")
_NODES = ("launcher.nnodes", "launcher.num_nodes", "slurm.nnodes", "slurm_nnodes", "slurm.num_nodes")


def devices(run: Run) -> float | None:
    """Processes of a run; None where nothing tells them."""
    rows = run.scan("facts").filter(pl.col("family").is_in(["env", "host"])).select("key", "value").collect()
    found: dict[str, float] = {}
    for key, value in rows.iter_rows():
        name, text = str(key).lower(), str(value).strip('"')
        if name in (*_WORLD, *_PER_NODE, *_NODES) and text.isdecimal() and len(text) < 8 and int(text):
            found[name] = float(text)
    world = next((found[name] for name in _WORLD if name in found), None)
    if world is not None:
        return world
    each, nodes = (next((found[name] for name in names if name in found), None) for names in (_PER_NODE, _NODES))
    return None if each is None else each * (nodes or 1.0)
