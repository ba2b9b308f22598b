"""The next check fits the cause: an experiment that cannot tell anything of it is not asked for."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import told, written
from tests.unit.symptoms.logs import FINE_TUNING, Value, cosine, falling, noisy, spread, steps

if TYPE_CHECKING:
    from pathlib import Path

DONE = "Training complete.\n"
LOWER, OVERFIT, ANSWERS = "a tenth of the learning rate", "next Overfit two examples", "next Read twenty answers"
OTHER_HOSTS = "next Run the same steps on other hosts"


def run(records: int, values: Mapping[str, Value], settings: str = "") -> dict[str, str]:
    return {"train.log": steps(records, **values) + DONE, **({"config.yaml": settings} if settings else {})}


def tuned(**changed: Value) -> dict[str, Value]:
    return {"loss": noisy(falling(2.0, 1.0), 0.03), "gnorm": spread(0.6), "lr": cosine(2e-4, 240)} | changed


def risen(n: int) -> float:
    return noisy(falling(2.3, 1.5), 0.03)(n) + 4 * (1 - exp(-max(0, n - 90) / 30))


SYMPTOMS: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    "a loss that rose": (run(240, tuned(loss=risen)), LOWER, (OVERFIT, ANSWERS)),
    "a loss that crawls": (
        run(300, tuned(loss=noisy(lambda n: 10.82 - 0.0006 * n, 0.02)), "lr: 1e-7\n"),
        "Raise the learning rate ten times",
        (LOWER, ANSWERS),
    ),
    "a loss that is high for a fine-tuning": (
        run(240, tuned(loss=noisy(falling(6.2, 4.7), 0.03)), FINE_TUNING),
        OVERFIT,
        (LOWER, ANSWERS),
    ),
    "a policy far from its reference": (
        run(
            200, {"loss": noisy(lambda _: 0.1, 0.01), "reward": noisy(lambda n: n / 400, 0.03), "kl": lambda n: n / 30}
        ),
        ANSWERS,
        (LOWER, OVERFIT),
    ),
    "a rank of its own configuration": (
        {f"rank{rank}/train.log": run(60, tuned())["train.log"] for rank in range(3)}
        | {f"rank{rank}/config.yaml": f"lr: 0.0002\nseed: {9 if rank == 1 else 7}\n" for rank in range(3)},
        "Give every rank the same configuration",
        (LOWER, OVERFIT, ANSWERS, OTHER_HOSTS),
    ),
    "steps that became slow": (run(400, tuned(step_time=lambda n: 0.5 if n < 200 else 0.9)), "slowdown", (LOWER,)),
    "steps that wait for data": (
        run(200, tuned(step_time=lambda _: 0.5, data_time=lambda n: 0.21 + n % 5 / 1000)),
        "more workers",
        (OTHER_HOSTS, LOWER),
    ),
}


@pytest.mark.parametrize("name", SYMPTOMS)
def test_the_next_check_is_one_that_tells_something_of_the_cause(tmp_path: Path, name: str) -> None:
    files, said, unsaid = SYMPTOMS[name]
    text = told(written(tmp_path, files))
    assert said in text
    assert [words for words in unsaid if words in text] == []
