"""What a key of a configuration means, whatever the trainer calls it; tables `config_keys.tsv`, `config_noise.tsv`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_FIRST_NOISE = re.compile(
    r"^(?:wandb|hydra|logging|loggers?|profil\w*|slurm|tensorboard|mlflow(?!\.source\.git)|trackio|comet|id2label|label2id"
    r"|_wandb|monitor\w*|metrics|tracking|callbacks?)\.|^define_metric\."
)
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Concept:
    """One meaning: its name, family, weight (0 to 10), how values are compared, and what it acts on."""

    name: str
    family: str
    weight: float
    kind: str
    acts_on: str


OTHER = Concept("other", "other settings", 1.0, "name", "not known")


@cache
def concepts() -> tuple[tuple[Concept, re.Pattern[str]], ...]:
    """Every meaning with the pattern of its keys, in the order in which they are tried."""
    found: list[tuple[Concept, re.Pattern[str]]] = []
    for cells in _rows("config_keys.tsv"):
        name, family, weight, kind, acts_on, pattern = cells
        found.append((Concept(name, family, float(weight), kind, acts_on), re.compile(pattern)))
    return tuple(found)


def _rows(name: str) -> list[list[str]]:
    text = (files("forensics.compare") / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


@cache
def _noise() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for _, pattern in _rows("config_noise.tsv"))


def normalised(key: str) -> str:
    """A key in lower case, its words joined by `_`, its parts by dots: `train/maxSteps` is `train.max_steps`."""
    plain = key[:300].replace("/", ".").replace("-", "_").lstrip(".")
    return _WORDS.sub("_", plain).lower()


@cache
def concept_of(key: str) -> Concept | None:
    """Give the meaning of a normalised key; `OTHER` where the table has none, None for noise."""
    if _FIRST_NOISE.match(key):
        return None
    for concept, pattern in concepts():
        if pattern.fullmatch(key):
            return concept
    if any(pattern.fullmatch(key) for pattern in _noise()):
        return None
    return OTHER
