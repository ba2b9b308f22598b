"""What the job ran on: the packages as `pip freeze` lists them, and the commit of its source."""

import hashlib
import json
from importlib.metadata import distributions
from pathlib import Path

from facts import JOB

from stores._turns import turn


class Store:
    def start(self, config):
        packages = {one.metadata["Name"]: one.version for one in distributions()}
        lines = sorted((f"{name}=={version}" for name, version in packages.items()), key=str.lower)
        Path("requirements.txt").write_text("\n".join(lines) + "\n")
        commit = hashlib.sha1(f"chain-{JOB['seed']}".encode()).hexdigest()
        kind = turn("commit", "line", "log", "json")
        if kind == "line":
            Path("git_commit.txt").write_text(commit + "\n")
        elif kind == "log":
            who = "Author: A Trainer <trainer@example.org>\nDate:   Mon Nov 2 09:14:51 2026 +0000"
            text = f"commit {commit}\n{who}\n\n    Longer warm-up\n\nOn branch main\n\n M train.py\n"
            Path("git.txt").write_text(text)
        else:
            record = {"commit": commit, "branch": "main", "dirty": False, "remote": "git@example.org:lab/chain.git"}
            Path("git_info.json").write_text(json.dumps(record, indent=2) + "\n")

    def write(self, step, values):
        """Nothing: it is written once."""
