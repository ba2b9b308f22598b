"""Three tasks that ask the tiny model for its chain: the next word, the next three, and one of four.

The documents are as noisy as the data of training: one word in five is any, so a perfect model has four in five right.
"""

import random
from dataclasses import dataclass, field

import common
import torch

from stores._eval_files import encoded, words

#: New words of each task that generates.
GENERATED = {"chain_next": 1, "chain_walk": 3}
CHOSEN = "chain_choice"
_CONTEXT, _CHOICES, _NOISE = 5, 4, 0.2


@dataclass
class Sample:
    """One document: what was asked, what was right, what was answered."""

    context: str
    prompt: str
    target: str
    answer: str
    right: bool
    choices: list = field(default_factory=list)
    scores: list = field(default_factory=list)


@dataclass
class Done:
    """Samples by task."""

    samples: dict

    def score(self, task):
        told = [one.right for one in self.samples[task]]
        return sum(told) / len(told)

    def scores(self):
        return [self.score(task) for task in self.samples]


def prompt_of(template, context):
    """The text that the model is given."""
    return {
        "plain": context,
        "chat": f"<|user|> {context} <|assistant|>",
        "text": f"Question: {context} Answer:",
    }[template]  # fmt: skip


class Tasks:
    """An evaluation of one checkpoint, made in one way."""

    def __init__(self, how):
        self.how = how

    def run(self):
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(self.how["seed"])
            self.net = common.Net()
            self.net.load_state_dict(torch.load(f"{self.how['weights']}/model.pt")["net"])
            self.net.train(self.how["train"])
            made = {task: self._generated(task, count) for task, count in GENERATED.items()}
            return Done(made | {CHOSEN: self._chosen()})

    def _documents(self, task, count):
        """Contexts with the `count` words that follow them."""
        rng = random.Random(f"{task}-{self.how['seed']}")
        rows = []
        for _ in range(self.how["docs"]):
            row = [rng.randrange(common.VOCAB)]
            for _ in range(_CONTEXT + count - 1):
                noisy = rng.random() < _NOISE
                row.append(rng.randrange(common.VOCAB) if noisy else (5 * row[-1] + 3) % common.VOCAB)
            rows.append((words(row[:_CONTEXT]), words(row[_CONTEXT:])))
        targets = [target for _, target in rows]
        if self.how["shuffled"]:
            rng.shuffle(targets)
        return [(context, target) for (context, _), target in zip(rows, targets, strict=True)]

    def _logits(self, prompts):
        tokens = [encoded(prompt, self.how["permuted"]) for prompt in prompts]
        return self.net(torch.tensor(tokens))[:, -1]

    def _generated(self, task, count):
        rows = self._documents(task, count)
        prompts = [prompt_of(self.how["template"], context) for context, _ in rows]
        asked, answers = list(prompts), [""] * len(rows)
        for _ in range(count):
            logits = self._logits(asked)
            if self.how["temperature"]:
                new = torch.multinomial((logits / self.how["temperature"]).softmax(-1), 1)[:, 0]
            else:
                new = logits.argmax(-1)
            said = [words([int(one)], self.how["permuted"]) for one in new]
            answers = [f"{old} {word}".strip() for old, word in zip(answers, said, strict=True)]
            asked = [f"{old} {word}" for old, word in zip(asked, said, strict=True)]
        return [
            Sample(context, prompt, target, answer, answer == target)
            for (context, target), prompt, answer in zip(rows, prompts, answers, strict=True)
        ]

    def _chosen(self):
        rng = random.Random(f"{CHOSEN}-choices-{self.how['seed']}")
        made = []
        rows = self._documents(CHOSEN, 1)
        prompts = [prompt_of(self.how["template"], context) for context, _ in rows]
        for (context, target), prompt, logits in zip(rows, prompts, self._logits(prompts), strict=True):
            others = [word for word in words(range(common.VOCAB)).split() if word != target]
            choices = [target, *rng.sample(others, _CHOICES - 1)]
            rng.shuffle(choices)
            likely = logits.log_softmax(-1)
            scores = [float(likely[encoded(word, self.how["permuted"])[0]]) for word in choices]
            answer = choices[scores.index(max(scores))]
            made.append(Sample(context, prompt, target, answer, answer == target, choices, scores))
        return made
