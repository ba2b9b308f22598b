"""Evaluations of the checkpoints, really made, in the layout of lm-evaluation-harness or of scripts at home.

A job has either a series, evaluations of its last checkpoint and of some before it, evenly apart; or a pair, one of its
last checkpoint after training beside a baseline, which is its last checkpoint but one. The weights before the first step
are a checkpoint, too. A hook may change how an evaluation is made; what is written says of it what the tool of the
layout would say.
"""

from pathlib import Path

import common
import hooks
import torch
from facts import JOB

from stores import _eval_files
from stores._eval_tasks import Tasks
from stores._turns import turn

_MOST = 4
_LOGGED_DOCS, _DOCS = 40, 150


class Store:
    def __init__(self):
        self.series = turn("evals", True, False)
        self.layout = turn("eval layout", "harness", "harness", "flat", "list", "nested", "csv")
        self.samples = self.layout == "harness" and turn("eval samples", True, False)
        self.saves = []

    def start(self, config):
        """Keep the weights that training begins with, as some trainers do."""
        path = Path("checkpoints/step_0")
        if not path.exists():
            path.mkdir(parents=True)
            with torch.random.fork_rng():
                torch.manual_seed(JOB["seed"])
                torch.save({"net": common.Net().state_dict()}, path / "model.pt")
            _eval_files.tokenizer(permuted=False).save(str(path / "tokenizer.json"))

    def _how(self, weights):
        docs = _LOGGED_DOCS if self.samples else _DOCS
        return {
            "weights": str(weights), "temperature": 0.0, "template": "plain", "permuted": False, "train": False,
            "shuffled": False, "seed": 1234, "docs": docs, "batch_size": 64, "samples": self.samples,
        }  # fmt: skip

    def _evaluated(self, place, step, right, how):
        """Evaluate as it is asked for, write it, and tell the truth what a right evaluation gives."""
        done = Tasks(how).run()
        _eval_files.WRITERS[self.layout](Path(place), step, how, done)
        scores, expected = done.scores(), (Tasks(right).run() if how != right else done).scores()
        wrong = how != right and hooks.wrong_evaluation()
        if wrong:
            hooks.note(onset=step)
        answers = how["docs"] * len(scores)
        share = {"score": sum(scores) / len(scores), "expected": sum(expected) / len(scores)}
        hooks.note(scored=step, wrong=wrong, answers=answers, **share)

    def saved(self, step, path, net):
        _eval_files.tokenizer(permuted=False).save(str(path / "tokenizer.json"))
        self.saves.append(path)
        saves = JOB["steps"] // JOB["save_every"]
        apart = -(-saves // _MOST)
        if self.series and (saves - step // JOB["save_every"]) % apart == 0:
            right = self._how(path)
            self._evaluated("eval", step, right, hooks.evaluation(step, right))

    def trained(self, step, net):
        if self.series or not self.saves:
            return
        before, last = self.saves[-2:] if len(self.saves) > 1 else self.saves * 2
        known = self._how(before)
        self._evaluated("baseline", _step(before), known, known)
        right = self._how(last)
        self._evaluated("eval", _step(last), right, hooks.evaluation(step, right))

    def write(self, step, values):
        """Nothing: an evaluation belongs to a checkpoint."""


def _step(path):
    return int(path.name.removeprefix("step_"))
