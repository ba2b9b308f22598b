"""Learning: the loss is finite, and wrong."""

from __future__ import annotations

from faults.row import SOFT, Fault, needs

ROWS = (
    Fault("learn-lr0", SOFT, "learning", ("lr_zero", "frozen_loss"), ("learning rate", "lr", "schedule"), needs("lr"), begins=(0.25, 0.45), ends="done"),
    Fault("learn-lr30", SOFT, "learning|nan", ("not_learning", "uniform_loss", "diverged", "frozen_loss", "never_regained"),
          ("learning rate", "lr"), needs("lr"), onset=False, ends="done"),
    Fault("learn-masked", SOFT, "learning", ("no_gradients", "frozen_loss", "loss_zero"), ("label", "mask", "gradient"), needs("batch"),
          onset=False, ends="done"),
    Fault("learn-shuffled", SOFT, "learning", ("not_learning", "uniform_loss", "plateau"), ("label", "data", "loss"), needs("batch"),
          onset=False, ends="done"),
    Fault("learn-spike", SOFT, "learning", ("diverged", "level_shift", "loss_spike", "lr_jump", "never_regained"),
          ("learning rate", "clip", "checkpoint", "data"), needs("lr"), ends="done", numbers={"factor": (40, 400)}),
)  # fmt: skip
