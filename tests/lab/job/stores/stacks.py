"""Stacks of all threads when a step does not end: faulthandler's timer, into a file for each rank or into stderr."""

import faulthandler
import sys
from pathlib import Path

from facts import RANK

from stores._turns import turn
from stores._watch import SILENT_S


class Store:
    everyone = True

    def start(self, config):
        self.out = sys.stderr
        if turn("stacks", True, False):
            Path("stacks").mkdir(exist_ok=True)
            self.out = open(f"stacks/rank_{RANK}.txt", "w")

    def begin(self, step):
        faulthandler.dump_traceback_later(SILENT_S, file=self.out)

    def close(self):
        faulthandler.cancel_dump_traceback_later()
