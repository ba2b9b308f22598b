"""The trainer's own configuration, as YAML, JSON or TOML, flat or in sections."""

import json
from pathlib import Path

import common
import yaml
from facts import JOB, WORLD

from stores._turns import turn


def _toml(sections):
    lines = []
    for name, keys in sections.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items()), ""]
    return "\n".join(lines)


class Store:
    def start(self, config):
        every = {"log_every": JOB["log_every"], "save_every": JOB["save_every"], "eval_every": JOB["eval_every"]}
        sections = {
            "model": {"name": "chain-net", "vocab_size": 64, "hidden_size": 48, "intermediate_size": 96},
            "optimizer": {"type": "adamw", "lr": common.BASE_LR, "weight_decay": 0.01},
            "training": {"batch_size": common.BATCH}
            | config
            | every
            | {"seed": JOB["seed"], "world_size": WORLD, "seq_len": 16},
            "checkpoint": {"folder": "checkpoints", "interval": JOB["save_every"]},
        }
        flat = {key: value for keys in sections.values() for key, value in keys.items() if key != "name"}
        kind = turn("config", "yaml", "json", "toml", "flat.yaml", "flat.json")
        if kind == "toml":
            Path("train_config.toml").write_text(_toml(sections))
        elif kind.endswith("yaml"):
            Path("config.yaml").write_text(yaml.safe_dump(flat if "flat" in kind else sections, sort_keys=False))
        else:
            Path("config.json").write_text(json.dumps(flat if "flat" in kind else sections, indent=2) + "\n")
