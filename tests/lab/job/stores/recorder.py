"""PyTorch's flight recorder, dumped by every rank that still lives when the job stands still.

NCCL's own watchdog dumps on a timeout; gloo has none, but records its collectives in the same recorder, so a thread of
the job dumps it, as pickle and as JSON, under the names that NCCL's would have.
"""

import os
from pathlib import Path

os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "200")
from facts import RANK  # noqa: E402 - the recorder reads its size when the first group is made
from torch._C import _distributed_c10d  # noqa: E402 - same

from stores._turns import turn  # noqa: E402 - same
from stores._watch import Watch  # noqa: E402 - same


class Store:
    everyone = True

    def start(self, config):
        self.kind = turn("recorder", "pickle", "json", "both")
        self.watch = Watch(self._dump)

    def _dump(self):
        folder = Path("fr_trace")
        folder.mkdir(exist_ok=True)
        if self.kind != "json":
            (folder / f"nccl_trace_rank_{RANK}").write_bytes(_distributed_c10d._dump_fr_trace())
        if self.kind != "pickle":
            (folder / f"nccl_trace_rank_{RANK}.json").write_bytes(_distributed_c10d._dump_fr_trace_json())

    def begin(self, step):
        self.watch.beat()

    def close(self):
        # ranks may still wait for each other at the end: that is dumped, too
        self.watch.beat()
