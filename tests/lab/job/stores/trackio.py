"""Trackio's local database."""

import os
from pathlib import Path


class Store:
    def start(self, config):
        os.environ["TRACKIO_DIR"] = str(Path.cwd() / "trackio")
        import trackio  # seconds, of which only the rank that logs pays

        self.trackio = trackio
        # the machine's own load is no part of the job
        trackio.init(project="chain", config=config, auto_log_cpu=False, auto_log_gpu=False)

    def write(self, step, values):
        self.trackio.log(values, step=step)

    def close(self):
        self.trackio.finish()
