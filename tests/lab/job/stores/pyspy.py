"""py-spy's dumps of every rank, taken from outside by `lab.py` when the job stands still; here a job allows it."""

import ctypes

_PR_SET_PTRACER, _ANY = 0x59616D61, -1


class Store:
    everyone = True

    def start(self, config):
        # no effect, and none needed, where the kernel lets a user trace its own processes
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_long(_ANY), 0, 0, 0)

    def write(self, step, values):
        """Nothing: the dumps are not the job's."""
