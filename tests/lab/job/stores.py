"""Files of metrics beside the log."""

from __future__ import annotations

import csv
import json


class Stores:
    """Writes each record to every store that was asked for."""

    def __init__(self, names):
        self.writer = self.table = self.lines = None
        self.fields = ("step", "train/loss", "train/grad_norm", "train/lr", "perf/step_time")
        if "tensorboard" in names:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - seconds of imports

            self.writer = SummaryWriter("tb")
        if "csv" in names:
            self.file = open("metrics.csv", "a", newline="")  # noqa: SIM115 - open as long as the job
            self.table = csv.DictWriter(self.file, self.fields)
            self.table.writeheader()
        if "jsonl" in names:
            self.lines = open("metrics.jsonl", "a")  # noqa: SIM115 - same

    def write(self, step, values):
        if self.writer:
            for name, value in values.items():
                self.writer.add_scalar(name, value, step)
            self.writer.flush()
        if self.table and "train/loss" in values:
            self.table.writerow({"step": step, **values})
            self.file.flush()
        if self.lines:
            self.lines.write(json.dumps({"step": step, **values}) + "\n")
            self.lines.flush()

    def close(self):
        if self.writer:
            self.writer.close()
