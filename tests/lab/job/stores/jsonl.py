"""JSON lines, a record each."""

import json


class Store:
    def __init__(self):
        self.lines = open("metrics.jsonl", "a")

    def write(self, step, values):
        self.lines.write(json.dumps({"step": step, **values}) + "\n")
        self.lines.flush()
