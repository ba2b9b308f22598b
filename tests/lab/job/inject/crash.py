"""Errors of the program's own."""

import os
import signal
import sys

from facts import AT, HERE, KIND, note


def before(step):
    if step != AT or (KIND == "crash-one" and not HERE):
        return
    note(onset=step)
    sys.stdout.flush()
    if KIND == "crash-bare":
        raise Exception("schedule and data disagree")
    if KIND == "crash-disk":
        raise OSError(28, "No space left on device", f"checkpoints/step_{step}/model.pt")
    if KIND == "crash-import":
        import flash_attn_kernels_v9  # noqa: F401 - it does not exist
    if KIND == "crash-segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if KIND in {"crash-all", "crash-one"}:
        raise KeyError("rope_scaling")
