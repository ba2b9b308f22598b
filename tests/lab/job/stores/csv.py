"""One table of the training metrics."""

import csv
import os

FIELDS = ("step", "train/loss", "train/grad_norm", "train/lr", "perf/step_time")


class Store:
    def __init__(self):
        new = not os.path.exists("metrics.csv")
        self.file = open("metrics.csv", "a", newline="")
        self.table = csv.DictWriter(self.file, FIELDS)
        if new:
            self.table.writeheader()

    def write(self, step, values):
        if "train/loss" in values:
            self.table.writerow({"step": step, **values})
            self.file.flush()
