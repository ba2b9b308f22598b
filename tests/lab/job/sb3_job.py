"""A corridor to walk down, under Stable-Baselines3's PPO: one of our steps is a rollout and its updates."""

from __future__ import annotations

import gymnasium
import hooks
import library
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback, EvalCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.torch_layers import FlattenExtractor

JOB = hooks.JOB
#: Steps of the environment in a rollout: what the library counts, and what its files are named by.
ROLLOUT = 32
#: What the library writes by itself.
_NATIVE = frozenset(("csv", "tensorboard"))
torch.set_num_threads(1)
now = {"step": hooks.STARTED_AT}


class Corridor(gymnasium.Env):
    """Eight places in a row; the door is at the right end, and each step costs a little."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (8,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def _seen(self):
        return np.eye(8, dtype=np.float32)[self.place]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.walked = 0, 0
        return self._seen(), {}

    def step(self, action):
        self.walked += 1
        slips = self.np_random.random() < 0.1
        self.place = min(max(self.place + (1 if (action == 1) != slips else -1), 0), 7)
        there = self.place == 7
        return self._seen(), 1.0 if there else -0.02, there, self.walked >= 40, {}


class Features(FlattenExtractor):
    """What the policy sees, as the hook changes it."""

    def forward(self, observations):
        states = super().forward(observations)
        return hooks.hidden(now["step"], states) if self.training else states


class Steps(BaseCallback):
    """Calls the hooks of a step, and notes what is logged."""

    def __init__(self):
        super().__init__()
        self.shown = library.Shown({"total_timesteps": JOB["steps"] * ROLLOUT, "n_steps": ROLLOUT}, _NATIVE)

    def _on_rollout_start(self):
        # what the last rollout's updates gave is logged with this one
        values = self.logger.name_to_value
        if "train/loss" in values:
            hooks.look(now["step"], values["train/loss"])
        now["step"] += 1
        self.shown.stores.begin(now["step"])
        hooks.before(now["step"])

    def _on_rollout_end(self):
        values = self.logger.name_to_value
        if now["step"] % JOB["log_every"] == 0 and "train/loss" in values:
            self.shown.train(now["step"], values["train/loss"], lr=values["train/learning_rate"])
        self.shown.stores.end(now["step"])
        library.leave(now["step"])

    def _on_step(self):
        return True

    def _on_training_end(self):
        self.shown.stores.close()


class Checkpoints(CheckpointCallback):
    """The library's own, with the hook of a save."""

    def _on_step(self):
        saves = self.n_calls % self.save_freq == 0
        if saves:
            hooks.saving(now["step"])
        going = super()._on_step()
        if saves:
            hooks.note(saved=now["step"])
        return going


class Evaluations(EvalCallback):
    """The library's own, with the hook of an evaluation."""

    def _on_step(self):
        if self.n_calls % self.eval_freq == 0:
            hooks.evaluating(now["step"])
        return super()._on_step()


def resumed(model):
    """The agent of the checkpoint, or what the hooks leave of it."""
    path = f"checkpoints/rl_model_{hooks.STARTED_AT * ROLLOUT}_steps.zip"
    print(f"Loading {path}")
    parts = {"policy": hooks.restore("net"), "policy.optimizer": hooks.restore("optimizer")}
    fresh = model.get_parameters()
    model.set_parameters(path)
    model.set_parameters({name: fresh[name] for name, kept in parts.items() if not kept}, exact_match=False)
    if hooks.restore("step"):
        model.num_timesteps = hooks.STARTED_AT * ROLLOUT


def main():
    steps = JOB["steps"]
    hooks.joining()
    model = PPO(
        "MlpPolicy", Monitor(Corridor(), "monitor.csv" if "csv" in JOB["stores"] else None), n_steps=ROLLOUT,
        batch_size=ROLLOUT, n_epochs=2, seed=JOB["seed"], verbose=1, device="cpu",
        learning_rate=lambda _left: library.rate(now["step"]),
        policy_kwargs={"features_extractor_class": Features, "net_arch": [16]},
    )  # fmt: skip
    formats = ["stdout", *(name for name in ("csv", "tensorboard") if name in JOB["stores"])]
    model.set_logger(configure(".", formats))
    if hooks.STARTED_AT:
        resumed(model)
    calls = [Steps(), Checkpoints(JOB["save_every"] * ROLLOUT, "checkpoints")]
    if JOB["eval_every"]:
        calls.append(Evaluations(Monitor(Corridor()), n_eval_episodes=3, eval_freq=JOB["eval_every"] * ROLLOUT))
    hooks.start()
    left = steps * ROLLOUT - model.num_timesteps
    try:
        model.learn(left, callback=calls, log_interval=JOB["log_every"], reset_num_timesteps=False)
    except ValueError as error:
        if "nan" in str(error):
            hooks.look(now["step"], float("nan"))
            hooks.note(shown=now["step"], loss="nan", norm="None", dt=None, lr=None)
        raise
    print(f"training finished after {model.num_timesteps} timesteps")
    hooks.leaving()
    hooks.note(ended=now["step"])


if __name__ == "__main__":
    main()
