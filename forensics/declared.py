"""What the declaration of a rule, and one of its findings, may say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from forensics.model import Causal, Confidence, Number, Severity, Shape

#: The shape that the first letters of a rule's id mean.
SHAPES = {
    "NAN": "nan",
    "OOM": "oom",
    "HNG": "hang",
    "SLO": "slowdown",
    "EVL": "bad_eval",
    "LRN": "learning",
    "RLX": "learning",
    "RSM": "learning",
    "HST": "learning",
    "CRH": "crash",
    "STP": "stopped",
}
#: The names of the values of a declaration: a rule needs none of their classes.
ShapeName = Shape | Literal["nan", "oom", "hang", "slowdown", "bad_eval", "learning", "crash", "stopped"]
SeverityName = Severity | Literal["info", "warning", "error"]
ConfidenceName = Confidence | Literal["low", "medium", "high"]
CausalName = Causal | Literal["root", "symptom", "context"]


class Declared(TypedDict, total=False):
    """What all findings of a rule have in common, or one of them has otherwise."""

    severity: SeverityName
    confidence: ConfidenceName
    cause: str
    causal: CausalName


class Fields(Declared, total=False):
    """What a finding may say besides its words, its proof and its onset."""

    shape: ShapeName
    culprits: tuple[int, ...]
    numbers: Mapping[str, Number]
    likely: tuple[str, ...]
    next: tuple[str, ...]
    decides: bool


def named(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields of a finding with the values that their names stand for.

    Raises `ValueError` for a name that means nothing.
    """
    return {key: _KINDS[key](value) if key in _KINDS else value for key, value in fields.items()}


_KINDS = {"shape": Shape, "severity": Severity, "confidence": Confidence, "causal": Causal}
