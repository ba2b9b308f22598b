"""The same job under the Hugging Face Trainer, alone or as ranks of torchrun over gloo."""

from __future__ import annotations

import common
import hf_hooks
import hooks
import library
import torch
from transformers import Trainer, TrainingArguments


class Hooked(hf_hooks.Hooked, Trainer):
    """The Trainer itself, with the hook of its gradients."""

    def training_step(self, *given, **named):
        value = super().training_step(*given, **named)
        hooks.gradients(self.model.at, self.model.net)
        return value


def main():
    hooks.joining()
    torch.manual_seed(hooks.JOB["seed"])
    model = library.Model()
    optimizer = library.optimizer_of(model)
    trainer = Hooked(
        model=model,
        args=hf_hooks.arguments(TrainingArguments, per_device_train_batch_size=1, per_device_eval_batch_size=1,
                                prediction_loss_only=True, label_names=["labels"]),
        train_dataset=common.Rows(),
        eval_dataset=common.Held(),
        data_collator=lambda rows: {"inputs": rows[0][0], "labels": rows[0][1]},
        optimizers=(optimizer, library.schedule_of(optimizer)),
        callbacks=[hf_hooks.Steps(model)],
    )  # fmt: skip
    hf_hooks.train(trainer)


if __name__ == "__main__":
    main()
