"""The same job under the Hugging Face Trainer."""

from __future__ import annotations

import common
import hooks
import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import Trainer, TrainerCallback, TrainingArguments

JOB = hooks.JOB


class Model(torch.nn.Module):
    """What the Trainer expects: a loss with the logits."""

    def __init__(self):
        super().__init__()
        self.net = common.Net()

    def forward(self, inputs, labels):
        self.net.train(self.training)
        return {"loss": common.cost(self.net, inputs, labels)}


class Steps(TrainerCallback):
    """Calls the hooks, and notes what is logged."""

    def on_step_begin(self, args, state, control, model=None, **_):
        model.net.at = state.global_step + 1
        hooks.before(state.global_step + 1)

    def on_save(self, args, state, control, **_):
        hooks.note(saved=state.global_step)

    def on_log(self, args, state, control, logs=None, **_):
        if "loss" in logs:
            hooks.note(
                shown=state.global_step,
                loss=repr(logs["loss"]),
                norm=repr(logs.get("grad_norm")),
                dt=None,
                lr=logs["learning_rate"],
            )


def main():
    torch.manual_seed(JOB["seed"])
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    schedule = LambdaLR(optimizer, lambda at: hooks.lr(at + 1, common.rate(at + 1, JOB["steps"])))
    arguments = TrainingArguments(
        output_dir="out", max_steps=JOB["steps"], per_device_train_batch_size=1, logging_steps=JOB["log_every"],
        save_steps=JOB["save_every"], report_to="none", use_cpu=True, seed=JOB["seed"], dataloader_pin_memory=False,
        max_grad_norm=0.0 if JOB["fault"] == "nan-lr" else 1.0, save_only_model=True,
    )  # fmt: skip
    collate = lambda rows: {"inputs": rows[0][0], "labels": rows[0][1]}  # noqa: E731 - a single row
    sampler = torch.utils.data.SequentialSampler
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=common.Rows(),
        data_collator=collate,
        optimizers=(optimizer, schedule),
        callbacks=[Steps()],
    )
    trainer._get_train_sampler = lambda *_: sampler(common.Rows())
    trainer.train()
    hooks.note(ended=JOB["steps"])


if __name__ == "__main__":
    main()
