"""The same job under Lightning."""

from __future__ import annotations

import common
import hooks
import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

JOB = hooks.JOB


class Module(lightning.LightningModule):
    """The net, with its schedule and what it logs."""

    def __init__(self):
        super().__init__()
        self.net = common.Net()

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda at: hooks.lr(at + 1, common.rate(at + 1, JOB["steps"]))
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def training_step(self, rows, at):
        step = self.global_step + 1
        self.net.at = step
        hooks.before(step)
        value = common.cost(self.net, *rows)
        rate = self.optimizers().param_groups[0]["lr"]
        self.log_dict({"train_loss": value, "lr": rate}, prog_bar=True)
        if step % JOB["log_every"] == 0:
            hooks.note(shown=step, loss=repr(value.item()), norm="None", dt=None, lr=rate)
        return value


def main():
    lightning.seed_everything(JOB["seed"])
    loader = torch.utils.data.DataLoader(common.Rows(), batch_size=None, shuffle=False)
    trainer = lightning.Trainer(
        max_steps=JOB["steps"], accelerator="cpu", log_every_n_steps=JOB["log_every"], logger=CSVLogger("."),
        callbacks=[ModelCheckpoint("checkpoints", every_n_train_steps=JOB["save_every"], save_top_k=-1)],
    )  # fmt: skip
    trainer.fit(Module(), loader)
    hooks.note(ended=JOB["steps"])


if __name__ == "__main__":
    main()
