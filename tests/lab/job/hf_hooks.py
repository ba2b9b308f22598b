"""The hooks in a Hugging Face Trainer, for its own script and for libraries that derive from it."""

from __future__ import annotations

import common
import facts
import hooks
import library
import torch
from transformers import TrainerCallback

JOB = hooks.JOB
#: What `report_to` fills.
NATIVE = frozenset(("tensorboard",))


def arguments(kind, **more):
    """Training arguments of a class, with what every job of this lab asks."""
    evaluates = {"eval_strategy": "steps", "eval_steps": JOB["eval_every"]} if JOB["eval_every"] else {}
    return kind(
        output_dir="out", max_steps=JOB["steps"], logging_steps=JOB["log_every"], save_steps=JOB["save_every"],
        report_to=sorted(NATIVE & set(JOB["stores"])) or "none", use_cpu=True, seed=JOB["seed"],
        dataloader_pin_memory=False, save_only_model=facts.STARTS == 1, ddp_timeout=library.START.seconds, ddp_backend="gloo" if hooks.WORLD > 1 else None,
        logging_nan_inf_filter=library.CHOICE.random() < 0.5, disable_tqdm=library.CHOICE.random() < 0.3,
        logging_first_step=library.CHOICE.random() < 0.5, ignore_data_skip=not hooks.restore("data"),
        max_grad_norm=library.CHOICE.choice([0.0, 1.0, 1.0]), **evaluates, **more,
    )  # fmt: skip


def resume():
    """The checkpoint that this process goes on from."""
    return f"out/checkpoint-{hooks.STARTED_AT}" if hooks.STARTED_AT and hooks.restore("step") else None


class Steps(TrainerCallback):
    """Calls the hooks of a step, and notes what is logged; `model` counts in `at`."""

    def __init__(self, model):
        self.model, self.shown = model, library.Shown(common.CONFIG, NATIVE)

    def on_train_begin(self, args, state, control, **_):
        library.meet()

    def on_step_begin(self, args, state, control, **_):
        self.model.at = state.global_step + 1
        self.shown.stores.begin(self.model.at)
        hooks.before(self.model.at)

    def on_step_end(self, args, state, control, **_):
        self.shown.stores.end(state.global_step)
        if hooks.stops(state.global_step):
            control.should_training_stop = True

    def on_save(self, args, state, control, **_):
        hooks.note(saved=state.global_step)
        library.leave(state.global_step)

    def on_log(self, args, state, control, logs=None, **_):
        if "eval_loss" in logs:
            self.shown.evaluated(state.global_step, logs["eval_loss"])
        if "loss" in logs:
            self.shown.train(state.global_step, logs["loss"], logs.get("grad_norm"), logs["learning_rate"])

    def on_train_end(self, args, state, control, **_):
        self.shown.stores.close()


class Hooked:
    """A Trainer that calls the hooks of a checkpoint and of an evaluation; comes before the Trainer's class."""

    def _get_train_sampler(self, *_):
        return torch.utils.data.SequentialSampler(self.train_dataset)

    def _save_checkpoint(self, *given, **named):
        hooks.saving(self.state.global_step)
        return super()._save_checkpoint(*given, **named)

    def evaluate(self, *given, **named):
        hooks.evaluating(self.state.global_step)
        return super().evaluate(*given, **named)

    def _load_from_checkpoint(self, *given, **named):
        if hooks.restore("net"):
            super()._load_from_checkpoint(*given, **named)

    def _load_optimizer_and_scheduler(self, checkpoint):
        fresh = self.optimizer.state_dict() if self.optimizer else None
        super()._load_optimizer_and_scheduler(checkpoint)
        if checkpoint and fresh and not hooks.restore("optimizer"):
            self.optimizer.load_state_dict(fresh)


def train(trainer):
    """Train, from the checkpoint where there is one, and note the end."""
    trainer.train(resume_from_checkpoint=resume())
    trainer.save_state()
    hooks.leaving()
    hooks.note(ended=trainer.state.global_step)
