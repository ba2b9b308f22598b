"""What goes wrong, where it goes wrong: called by every loop at the same places, and nothing else in a job knows of it."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

import torch

JOB = json.loads(Path(os.environ["LAB_JOB"]).read_text())
NOTES = Path(os.environ["LAB_NOTES"])
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
KIND, AT, NUMBERS = JOB["fault"], JOB["at"], JOB["numbers"]
#: What one step takes beside its arithmetic, so that a slowdown is one against something.
PACE_S = 0.03
HERE = JOB["rank"] == RANK
STARTED_AT = int(os.environ.get("LAB_START", "0"))
kept = []


def note(**facts):
    """Tell the truth file, outside of the run, what happened; the last word on a key counts."""
    with NOTES.with_suffix(f".{RANK}").open("a") as out:
        out.write(json.dumps(facts) + "\n")


def lr(step, rate):
    if KIND == "nan-lr" and step >= AT:
        return rate * NUMBERS["factor"]
    if KIND == "learn-lr0" and step >= AT:
        return 0.0
    if KIND == "learn-lr30":
        return 30.0
    if KIND == "learn-spike" and AT <= step < AT + 3:
        return rate * NUMBERS["factor"]
    return rate


def schedule_step(step):
    """The step that the schedule believes in: a resumed one may begin anew."""
    return step - STARTED_AT if KIND == "resume-schedule" else step


def batch(step, inputs, labels):
    """Tokens in and out of one step."""
    if KIND == "learn-masked":
        labels = torch.full_like(labels, -100)
    elif KIND == "learn-shuffled":
        labels = torch.randint_like(labels, 64)
    elif KIND == "mem-batch" and step == AT:
        note(onset=step)
        inputs = inputs.repeat(400_000, 1)
        labels = labels.repeat(400_000, 1)
    return inputs, labels


def hidden(step, states):
    """What the first layer gives; a sample that is not a number comes in here."""
    if KIND in {"nan-sample", "nan-hidden"} and step == AT:
        return states * float("nan")
    if KIND == "nan-one-rank" and step == AT and HERE:
        return states * float("inf")
    return states


def loss(step, value):
    if KIND == "nan-log0" and step >= AT:
        return value + torch.log(value.detach() * 0) * 0
    if KIND == "fine-spikes" and step % 41 == 17:
        return value * NUMBERS["factor"]
    return value


def before(step):
    """Between two steps: waits, dies, leaves."""
    if KIND == "mem-slope" and step > 5:
        kept.append(bytearray(int(NUMBERS["mb"] * 1e6)))
        kept[-1][::4096] = b"x" * len(kept[-1][::4096])
    _pace(step)
    if step != AT:
        return
    if KIND == "resume-loop":
        note(onset=step)
        _crash(step)
    elif KIND in {"crash-all", "crash-bare", "crash-one", "crash-disk", "crash-import", "crash-segv"}:
        if KIND != "crash-one" or HERE:
            note(onset=step)
            _crash(step)
    elif KIND in {"stop-term", "stop-int", "stop-limit"}:
        if RANK == 0:
            note(onset=step)
            _stop()
    elif KIND == "hang-loader" and HERE:
        note(onset=step)
        time.sleep(120)
    elif KIND == "hang-exit0" and HERE:
        note(onset=step)
        sys.stdout.flush()
        os._exit(0)
    elif KIND == "hang-kill9" and HERE:
        note(onset=step)
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif KIND == "cut":
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    elif KIND == "fine-warnings":
        for text in ("UserWarning: lr_scheduler.step() before optimizer.step()", "WARNING: retrying request 1/5"):
            print(text, file=sys.stderr, flush=True)
    elif KIND == "fine-caught":
        try:
            open("missing-cache.json")  # noqa: SIM115 - it is not there
        except OSError:
            traceback.print_exc()
            print("cache not found, rebuilding it", flush=True)


def leaves(step):
    """Whether the first of two processes ends here, at its last checkpoint before the fault."""
    resumed = KIND == "fine-resumed" or KIND in {"resume-schedule", "resume-weights"}
    return resumed and not STARTED_AT and step == AT // JOB["save_every"] * JOB["save_every"] > 0


def skips(step):
    """Whether this rank leaves the collective of this step out."""
    return KIND == "hang-skip" and step == AT and HERE


def hides():
    """Whether the logger shows a loss of 0 in place of one that is not finite."""
    return KIND == "nan-hidden"


def interval(step, every):
    """The log interval, which one control changes in the middle."""
    return every * 5 if KIND == "fine-interval" and step >= AT else every


def saving(step):
    """While a checkpoint is written."""
    if KIND == "slow-saves":
        time.sleep(NUMBERS["seconds"])


def evaluating(step):
    if KIND == "fine-pauses":
        time.sleep(NUMBERS["seconds"])


def start():
    """Before the first step."""
    if KIND in {"mem-slope", "mem-batch"}:
        held = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
        most = held + (600 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _pace(step):
    pause = PACE_S
    if KIND == "slow-loader" and step >= AT:
        pause *= NUMBERS["times"]
    elif KIND == "slow-ramp" and step >= AT:
        share = (step - AT) / max(JOB["steps"] - AT, 1)
        pause *= 1 + share * (NUMBERS["times"] - 1)
    elif KIND == "slow-straggler" and step >= AT and HERE:
        pause *= NUMBERS["times"]
    elif KIND == "slow-pauses" and step >= AT and (step - AT) % int(NUMBERS["every"]) == 0:
        pause += NUMBERS["seconds"]
    if KIND.startswith("slow-") and step == AT:
        note(onset=step)
    time.sleep(pause)


def _crash(step):
    sys.stdout.flush()
    if KIND == "crash-bare":
        raise Exception("schedule and data disagree")  # noqa: TRY002 - bare on purpose
    if KIND == "crash-disk":
        raise OSError(28, "No space left on device", f"checkpoints/step_{step}/model.pt")
    if KIND == "crash-import":
        import flash_attn_kernels_v9  # noqa: F401, PLC0415 - it does not exist
    if KIND == "crash-segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    raise KeyError("rope_scaling")


def _stop():
    sys.stdout.flush()
    if KIND == "stop-int":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    if KIND == "stop-limit":
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
        print(
            f"slurmstepd: error: *** JOB 48213 ON node07 CANCELLED AT {stamp} DUE TO TIME LIMIT ***",
            file=sys.stderr,
            flush=True,
        )
    os.kill(os.getppid() if WORLD > 1 else os.getpid(), signal.SIGTERM)
    time.sleep(20)
