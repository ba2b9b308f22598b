"""The same job under Keras 3 with torch behind it: a progress bar, or a line an epoch and a table."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "torch"
import common
import hooks
import keras
import library
import torch

JOB = hooks.JOB
_BAR = JOB["trainer"] == "keras"
#: Steps of an epoch; a checkpoint is at the end of one.
EPOCH = 10 if _BAR else 5
now = {"step": 0, "trains": False}


class Hidden(keras.layers.Layer):
    """What the embedding gives, as the hook changes it."""

    def call(self, states, training=False):
        return hooks.hidden(now["step"], states) if training and now["trains"] else states


def cost(labels, logits):
    """Cross entropy over tokens; 0 where every label is masked."""
    value = torch.nn.functional.cross_entropy(
        logits.flatten(0, -2), labels.flatten().long(), ignore_index=-100, reduction="sum"
    ) / (labels != -100).sum().clamp(min=1)
    if now["trains"]:
        value = hooks.loss(now["step"], value)
        hooks.look(now["step"], value.item())
    elif now["step"] and value.device.type != "meta":
        value = library.evaluated(now["step"], value)
    return value


class Batches(keras.utils.PyDataset):
    """A batch of each step of the job."""

    def __init__(self, rows, first=0):
        super().__init__()
        self.rows, self.first = rows, first

    def __len__(self):
        return len(self.rows) - self.first

    def __getitem__(self, index):
        return tuple(part.numpy() for part in self.rows[self.first + index])


class Steps(keras.callbacks.Callback):
    """Calls the hooks of a step and of an evaluation; sets the rate, and notes what is logged."""

    def __init__(self):
        super().__init__()
        self.shown = library.Shown(common.CONFIG, ("csv",))

    def on_train_batch_begin(self, batch, logs=None):
        now["step"] += 1
        now["trains"] = True
        self.model.optimizer.learning_rate = library.rate(now["step"])
        self.shown.stores.begin(now["step"])
        hooks.before(now["step"])

    def on_train_batch_end(self, batch, logs=None):
        if _BAR:
            self.note(logs)
        self.shown.stores.end(now["step"])

    def on_test_begin(self, logs=None):
        now["trains"] = False
        hooks.evaluating(now["step"])

    def on_epoch_end(self, epoch, logs=None):
        if not _BAR:
            self.note(logs)
        if "val_loss" in logs:
            self.shown.evaluated(now["step"], logs["val_loss"])
        library.leave(now["step"])
        self.model.stop_training |= hooks.stops(now["step"])

    def note(self, logs):
        self.shown.train(now["step"], logs["loss"], lr=float(self.model.optimizer.learning_rate))

    def on_train_end(self, logs=None):
        self.shown.stores.close()


class Checkpoints(keras.callbacks.ModelCheckpoint):
    """Keras's own, with the hook of a save."""

    def _save_model(self, *given, **named):
        hooks.saving(now["step"])
        super()._save_model(*given, **named)
        hooks.note(saved=now["step"])


def made():
    """An embedding, a layer and a head."""
    given = keras.Input((None,), dtype="int32")
    states = Hidden()(keras.layers.Embedding(common.VOCAB, 48)(given))
    turned = keras.layers.Dense(48)(keras.layers.Dense(96, activation="gelu")(states))
    return keras.Model(given, keras.layers.Dense(common.VOCAB)(keras.layers.Add()([states, turned])))


def resumed(net):
    """The net of the checkpoint, or what the hooks leave of it."""
    path = f"checkpoints/epoch_{hooks.STARTED_AT // EPOCH:02d}.keras"
    print(f"loading {path}")
    old = keras.saving.load_model(path, custom_objects={"Hidden": Hidden, "cost": cost})
    if not hooks.restore("net"):
        old.set_weights(net.get_weights())
    if not hooks.restore("optimizer"):
        old.compile(optimizer=keras.optimizers.AdamW(common.BASE_LR), loss=cost)
    return old


def main():
    hooks.joining()
    keras.utils.set_random_seed(JOB["seed"])
    model = made()
    model.compile(optimizer=keras.optimizers.AdamW(common.BASE_LR), loss=cost)
    model.summary()
    first = 0
    if hooks.STARTED_AT:
        model = resumed(model)
        first = hooks.STARTED_AT if hooks.restore("step") else 0
    now["step"] = first
    calls = [Steps(), Checkpoints("checkpoints/epoch_{epoch:02d}.keras", save_freq=JOB["save_every"])]
    if "csv" in JOB["stores"]:
        calls.append(keras.callbacks.CSVLogger("training.csv", append=bool(hooks.STARTED_AT)))
    if library.CHOICE.random() < 1 / 3:
        calls.append(keras.callbacks.TerminateOnNaN())
    held = Batches(common.Held()) if JOB["eval_every"] else None
    hooks.start()
    model.fit(
        Batches(common.Rows(), first if hooks.restore("data") else 0), epochs=-(-JOB["steps"] // EPOCH),
        steps_per_epoch=EPOCH, initial_epoch=first // EPOCH, validation_data=held,
        validation_freq=max(JOB["eval_every"] // EPOCH, 1), verbose=1 if _BAR else 2, callbacks=calls, shuffle=False,
    )  # fmt: skip
    hooks.leaving()
    hooks.note(ended=now["step"])


if __name__ == "__main__":
    main()
