"""Chrome traces of torch.profiler, for each rank, of a few steps early and a few late.

Only the CPU's activities are there, as there is no other device: operators, and gloo's collectives.
"""

from pathlib import Path

import torch
from facts import JOB, RANK, WORLD
from torch.profiler import ProfilerActivity, schedule, tensorboard_trace_handler

from stores._turns import turn


class Store:
    everyone = True

    def start(self, config):
        Path("traces").mkdir(exist_ok=True)
        # a step is about 250 kB of JSON, a tenth of it compressed: one as JSON, or two early and two late
        plain = WORLD == 1 and turn("profile", True, False)
        active, windows = (1, 1) if plain else (2, 2)
        apart = max(JOB["steps"] // 2 - active - 1, 1)
        self.profiler = torch.profiler.profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(
                skip_first=8, wait=apart, warmup=1, active=active, repeat=windows, skip_first_wait=windows - 1
            ),
            on_trace_ready=self._plain if plain else tensorboard_trace_handler("traces", f"rank{RANK}", use_gzip=True),
        )
        self.profiler.start()

    def _plain(self, profiler):
        profiler.export_chrome_trace(f"traces/rank{RANK}_step{profiler.step_num}.json")

    def end(self, step):
        self.profiler.step()

    def close(self):
        self.profiler.stop()
