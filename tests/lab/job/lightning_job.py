"""The same job under Lightning, alone or as ranks of torchrun over gloo."""

from __future__ import annotations

import common
import hooks
import lightning
import library
import torch
from lightning.pytorch.callbacks import ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy

JOB = hooks.JOB
#: What Lightning's loggers fill.
_NATIVE = {"csv": lambda: CSVLogger("."), "tensorboard": lambda: TensorBoardLogger(".", name="lightning_logs")}


class Module(lightning.LightningModule):
    """The net, with its schedule and what it logs."""

    def __init__(self):
        super().__init__()
        self.model, self.shown = library.Model(), library.Shown(common.CONFIG, _NATIVE)

    def configure_optimizers(self):
        optimizer = library.optimizer_of(self.model)
        schedule = library.schedule_of(optimizer)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_train_start(self):
        library.meet()

    def training_step(self, rows, at):
        step = self.model.at = self.global_step + 1
        self.shown.stores.begin(step)
        hooks.before(step)
        value = self.model(*rows)["loss"]
        rate = self.optimizers().param_groups[0]["lr"]
        self.log_dict({"train_loss": value, "lr": rate}, prog_bar=True)
        if step % JOB["log_every"] == 0:
            self.shown.train(step, value.item(), lr=rate)
        return value

    def on_after_backward(self):
        hooks.gradients(self.model.at, self.model.net)

    def on_train_batch_end(self, *_):
        self.shown.stores.end(self.global_step)
        library.leave(self.global_step)
        self.trainer.should_stop |= hooks.stops(self.global_step)

    def on_validation_start(self):
        if self.trainer.state.fn == "fit" and not self.trainer.sanity_checking:
            hooks.evaluating(self.global_step)

    def validation_step(self, rows, at):
        self.log(
            "val_loss", self.model(*rows)["loss"], prog_bar=True, sync_dist=hooks.WORLD > 1, batch_size=common.BATCH
        )

    def on_validation_epoch_end(self):
        self.shown.evaluated(self.global_step, self.trainer.callback_metrics["val_loss"].item())

    def on_load_checkpoint(self, checkpoint):
        if not hooks.restore("net"):
            checkpoint["state_dict"] = self.state_dict()
        if not hooks.restore("optimizer"):
            for state in checkpoint["optimizer_states"]:
                state["state"] = {}

    def on_train_end(self):
        self.shown.stores.close()


class Checkpoints(ModelCheckpoint):
    """Lightning's own, with the hook of a save."""

    def _save_checkpoint(self, trainer, path):
        hooks.saving(trainer.global_step)
        super()._save_checkpoint(trainer, path)
        hooks.note(saved=trainer.global_step)


def main():
    hooks.joining()
    lightning.seed_everything(JOB["seed"])
    rows = common.Rows()
    done = hooks.STARTED_AT if hooks.STARTED_AT and hooks.restore("step") else 0
    order = range(hooks.RANK, len(rows), hooks.WORLD)
    loader = torch.utils.data.DataLoader(
        rows, batch_size=None, sampler=order[done:] if done and hooks.restore("data") else order
    )
    held = torch.utils.data.DataLoader(common.Held(), batch_size=None)
    ranks = hooks.WORLD > 1
    trainer = lightning.Trainer(
        max_steps=JOB["steps"], max_epochs=-1, accelerator="cpu", devices=hooks.WORLD, log_every_n_steps=JOB["log_every"],
        strategy=DDPStrategy(process_group_backend="gloo", timeout=library.START) if ranks else "auto",
        use_distributed_sampler=False, logger=[_NATIVE[name]() for name in JOB["stores"] if name in _NATIVE],
        val_check_interval=JOB["eval_every"] or None, check_val_every_n_epoch=None if JOB["eval_every"] else 1,
        limit_val_batches=4 if JOB["eval_every"] else 0, gradient_clip_val=library.CHOICE.choice([None, 1.0]),
        callbacks=[
            Checkpoints("checkpoints", every_n_train_steps=JOB["save_every"], save_top_k=-1, filename="step_{step}",
                        auto_insert_metric_name=False),
            *([RichProgressBar()] if library.CHOICE.random() < 1 / 4 else []),
        ],
    )  # fmt: skip
    path = f"checkpoints/step_{hooks.STARTED_AT}.ckpt" if done else None
    trainer.fit(Module(), loader, held, ckpt_path=path)
    hooks.leaving()
    hooks.note(ended=trainer.global_step)


if __name__ == "__main__":
    main()
