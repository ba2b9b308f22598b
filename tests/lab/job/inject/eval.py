"""Evaluations that are made wrongly, of a model that learnt well."""

from facts import AT, KIND, NUMBERS

from stores._turns import turn


def evaluation(step, how):
    if step < AT:
        return how
    changed = {
        "eval-decoding": lambda: {"temperature": NUMBERS["temperature"]},
        "eval-tokenizer": lambda: {"permuted": True},
        "eval-template": lambda: {"template": turn("template", "chat", "text")},
        "eval-dropout": lambda: {"train": True},
        "eval-checkpoint": lambda: {"weights": "checkpoints/step_0"},
        "eval-order": lambda: {"shuffled": True},
    }[KIND]
    return how | changed()


def wrong_evaluation():
    return True


def dropout():
    return NUMBERS["dropout"] if KIND == "eval-dropout" else 0.0
