"""Errors of the program's own."""

import ctypes
import errno
import faulthandler
import importlib
import os
import resource
import signal
import socket
import sys
from pathlib import Path

import torch
from facts import AT, HERE, JOB, KIND, RANK, note

#: Where only one rank fails, the others go on.
_ONE_RANK = frozenset(("crash-one", "crash-segv", "crash-abort"))
#: A process that may open so few files leaks some at each step.
_FILES, _LEAKED = 400, 5
_loader, _losses, _open_files = [], [], []


def joining():
    if KIND == "crash-config":
        settings = {"lr": 6e-3, "steps": JOB["steps"]}
        settings["attention"]["heads"] = 4
    if KIND == "crash-port" and not RANK:
        other = socket.socket()
        other.bind(("127.0.0.1", 0))
        other.listen()
        torch.distributed.TCPStore("127.0.0.1", other.getsockname()[1], 1, is_master=True)


def start():
    if KIND == "crash-handler":
        faulthandler.enable()
    if KIND == "crash-files":
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    if KIND == "crash-worker":
        _loader.append(iter(torch.utils.data.DataLoader(_Batches(), batch_size=None, num_workers=2)))


class _Batches(torch.utils.data.Dataset):
    def __len__(self):
        return JOB["steps"] + 8

    def __getitem__(self, at):
        import common  # noqa: PLC0415 - it imports the hooks, which import this

        return common.chain(torch.Generator().manual_seed(JOB["seed"] * 1000 + at))


def _shard(number):
    path = f"data/shard-{number:05d}.bin"
    try:
        return open(path, "rb").read()
    except FileNotFoundError as error:
        raise RuntimeError(f"could not read shard {number}") from error


def before(step):
    if KIND == "crash-files":
        _open_files.extend(Path(__file__).open(encoding="utf-8") for _ in range(_LEAKED))
    if step != AT or (KIND in _ONE_RANK and not HERE) or KIND not in _DIE:
        return
    note(onset=step)
    sys.stdout.flush()
    _DIE[KIND](step)


def _key(_step):
    raise KeyError("rope_scaling")


def _bare(_step):
    raise Exception("schedule and data disagree")


def _lines(step):
    raise ValueError(
        f"batch {step} is not usable:\n  tokens: 128 of 128\n  labels: 127 of 128\n\nLook at shard 17 of the data set, "
        "row 4411,\nor leave it out with --skip-shards 17."
    )


def _assertion(step):
    seen, expected = step * 8, step * 8 + 1
    assert seen == expected, f"{seen} samples were read, {expected} were expected"


def _module(_step):
    importlib.import_module("flash_attn_kernels_v9")


def _decoded(step):
    corpus = Path(f"data-{step}.txt")
    corpus.write_bytes("déjà vu\n".encode("latin-1"))
    corpus.read_text(encoding="utf-8")


_DIE = {
    "crash-decode": _decoded,
    "crash-all": _key,
    "crash-one": _key,
    "crash-bare": _bare,
    "crash-lines": _lines,
    "crash-chain": lambda step: _shard(step % 40),
    "crash-assert": _assertion,
    "crash-import": _module,
    "crash-segv": lambda _step: os.kill(os.getpid(), signal.SIGSEGV),
    "crash-handler": lambda _step: ctypes.string_at(0),
    "crash-abort": lambda _step: os.abort(),
    "crash-worker": lambda _step: os.kill(_loader[0]._workers[0].pid, signal.SIGKILL),
}


def hidden(step, states):
    if KIND == "crash-shape" and step == AT:
        note(onset=step)
        return states[..., :40]
    if step == AT and KIND in _GRAPH:
        note(onset=step)
        return _GRAPH[KIND](states)
    return states


def _changed_in_place(states):
    activation = torch.exp(states * 0.01)
    activation += 1
    return states + activation * 0


_GRAPH = {"crash-inplace": _changed_in_place, "crash-dtype": lambda states: states.half()}


def loss(step, value):
    """The loss of the step before is added, whose graph is gone; or the graph of this one is cut off."""
    if KIND == "crash-twice":
        _losses.append(value)
    if step != AT or KIND not in {"crash-twice", "crash-detached"}:
        return value
    note(onset=step)
    return value + _losses[0] if KIND == "crash-twice" else value.detach()


def batch(step, inputs, labels):
    if KIND == "crash-worker":
        return next(_loader[0])
    if step == AT and KIND == "crash-index":
        note(onset=step)
        return inputs + 9, labels
    if step == AT and KIND == "crash-label":
        note(onset=step)
        return inputs, labels + 40
    return inputs, labels


def saving(step):
    """A full disk: the device that always is one is written by the same calls."""
    if KIND not in {"crash-disk", "crash-writer", "crash-quota"} or step < AT - AT % JOB["save_every"]:
        return
    note(onset=step)
    place = Path(f"checkpoints/step_{step}")
    if KIND == "crash-quota":
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), str(place / "model.pt"))
    if KIND == "crash-disk":
        (place / "trainer.json").symlink_to("/dev/full")
        with (place / "trainer.json").open("w") as out:
            out.write(f'{{"step": {step}, "rng": [{"0, " * 4000}0]}}')
    if KIND == "crash-writer":
        (place / "model.pt").symlink_to("/dev/full")


def leaves(_step):
    return KIND in {"crash-missing", "crash-torn", "crash-state"}


def resuming(path):
    """Between the two processes the checkpoint was lost, or half of it, or the model's head was changed."""
    model = Path(path) / "model.pt"
    if KIND == "crash-missing":
        model.unlink()
    if KIND == "crash-torn":
        os.truncate(model, model.stat().st_size // 2)
    if KIND == "crash-state":
        state = torch.load(model)
        state["net"]["head.weight"] = torch.zeros(128, 48)
        torch.save(state, model)
