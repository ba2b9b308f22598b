"""Memory that runs out, under a limit of the address space."""

import resource
from pathlib import Path

from facts import AT, KIND, NUMBERS, note

_ROOM_BYTES = 600 << 20
kept = []


def start():
    held = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (held + _ROOM_BYTES, held + _ROOM_BYTES))


def before(step):
    if KIND == "mem-slope" and step > 5:
        kept.append(bytearray(int(NUMBERS["mb"] * 1e6)))
        kept[-1][::4096] = b"x" * len(kept[-1][::4096])


def batch(step, inputs, labels):
    if KIND == "mem-batch" and step == AT:
        note(onset=step)
        return inputs.repeat(400_000, 1), labels.repeat(400_000, 1)
    return inputs, labels
