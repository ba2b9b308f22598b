"""An answer against the truth: outcome, shape, onset, culprits, cause, checkpoint, first action, and how sure it was."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FIELDS = ("outcome", "shape", "onset", "culprits", "cause", "checkpoint", "action")
#: Fields of a truth or a label that are judged or counted by; the rest of a truth file says how the job went.
TRUTH = (
    "outcome", "shape", "causes", "onset", "within", "culprits", "checkpoint", "says", "fault", "trainer", "ranks",
    "epoch_steps",
)  # fmt: skip
#: Shapes that say how well a run worked: `suspect` says them as well as `failed` does.
SOFT = frozenset(("learning", "slowdown", "bad_eval"))
#: Without these the answer is wrong: they are what "all right" means.
DECISIVE = ("outcome", "shape", "onset", "culprits")
_TIMEOUT_S = 120
#: Two-sided 95 % of a normal distribution.
_Z = 1.96


def scored(name: str, place: Path, truth: Mapping[str, Any], program: str) -> dict[str, Any]:
    """Ask `forensics triage` of a run and judge its answer; no answer is wrong in every field that is open."""
    document = _asked(program, "triage", place)
    said = of_document(document) if document else None
    if said is not None and "nan" in str(truth["shape"]) and said["checkpoint"] is None:
        said["checkpoint"] = (_asked(program, "nan-origin", place) or {}).get("last_clean_checkpoint")
    return {"name": name, "truth": {key: truth.get(key) for key in TRUTH}, "said": said, "right": judged(truth, said)}


def _asked(program: str, command: str, place: Path) -> dict[str, Any] | None:
    line = [*shlex.split(program), command, str(place), "--format", "json", "--exit-zero"]
    try:
        return json.loads(subprocess.run(line, capture_output=True, timeout=_TIMEOUT_S, check=False).stdout)
    except (json.JSONDecodeError, subprocess.TimeoutExpired):
        return None


def of_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a `forensics.report/1` document says, the last run's where there are several."""
    one = document["runs"][-1] if "runs" in document else document
    verdict = one["verdict"]
    lead = verdict.get("lead")
    leads = [f for f in one["findings"] if (f["shape"], f["cause"]) == (verdict["shape"], verdict["cause"])]
    leads = leads if lead is None else [one["findings"][lead]]
    actions = [action["text"] for action in verdict.get("actions", ())] or (leads[0]["next"] if leads else [])
    return said_of(verdict, (verdict.get("onset") or {}).get("step"), actions)


def of_triage(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What a golden answer says, laid out as `of_document` does."""
    return said_of(answer, answer["onset"][0], answer["actions"])


def said_of(verdict: Mapping[str, Any], onset: int | None, actions: Sequence[str]) -> dict[str, Any]:
    """The judged fields of a verdict."""
    return {
        "outcome": verdict["outcome"],
        "shape": verdict["shape"] or "none",
        "onset": onset,
        "culprits": verdict["culprits"],
        "cause": verdict["cause"],
        "confidence": verdict["confidence"],
        "checkpoint": verdict.get("checkpoint"),
        "has_checkpoint": "checkpoint" in verdict,
        "action": actions[0] if actions else "",
    }


def judged(truth: Mapping[str, Any], said: Mapping[str, Any] | None) -> dict[str, bool | None]:
    """Whether each field is right; None where the truth leaves it open."""
    failed = truth["outcome"].split("|")[0] == "failed"
    shapes = truth["shape"].split("|")
    open_fields = {
        "outcome": True,
        "shape": True,
        "onset": truth["onset"] is not None,
        "culprits": truth["culprits"] is not None,
        "cause": failed and bool(truth["causes"]),
        "checkpoint": truth.get("checkpoint") is not None,
        "action": failed and bool(truth["says"]),
    }
    if said is None:
        return {name: False if is_open else None for name, is_open in open_fields.items()}
    outcomes = truth["outcome"].split("|")
    soft = said["outcome"] in {"failed", "suspect"} and {"failed", "suspect"} & set(outcomes) and SOFT & set(shapes)
    tests: dict[str, Callable[[], bool]] = {
        "outcome": lambda: said["outcome"] in outcomes or bool(soft),
        "shape": lambda: said["shape"] in shapes,
        "onset": lambda: any(abs(at - truth["onset"]) <= truth["within"] for at in _counts(truth, said["onset"])),
        "culprits": lambda: sorted(said["culprits"]) == sorted(truth["culprits"]),
        "cause": lambda: said["cause"] in truth["causes"],
        "checkpoint": lambda: truth["checkpoint"] in _counts(truth, (said["checkpoint"] or {}).get("step")),
        "action": lambda: any(word in said["action"].lower() for word in truth["says"]),
    }
    asked_checkpoint = said["has_checkpoint"] or said["checkpoint"] is not None or "nan" in shapes
    open_fields["checkpoint"] = open_fields["checkpoint"] and asked_checkpoint
    return {name: tests[name]() if is_open else None for name, is_open in open_fields.items()}


def _counts(truth: Mapping[str, Any], step: int | None) -> Iterator[int]:
    """The step as it was said, and the epoch that it is in, where the job counts epochs and prints their steps."""
    if step is not None:
        yield step
        if per_epoch := truth.get("epoch_steps"):
            yield -(-step // per_epoch)


def all_right(row: Mapping[str, Any]) -> bool:
    """Whether outcome, shape, onset and culprits are right, each as far as the truth says it."""
    return all(row["right"][name] is not False for name in DECISIVE)


def answered(row: Mapping[str, Any]) -> bool:
    """Whether outcome and shape are right."""
    return bool(row["right"]["outcome"] and row["right"]["shape"])


def shares(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """For each field, and for all of the decisive ones together: right answers of judged ones."""
    found = {}
    for name in FIELDS:
        told = [row["right"][name] for row in rows if row["right"][name] is not None]
        found[name] = (sum(told), len(told))
    return found | {"all right": (sum(map(all_right, rows)), len(rows))}


def grouped(rows: Iterable[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], str]) -> dict[str, tuple[int, int]]:
    """Jobs with the right outcome and shape, by a key of each, in the order of the key."""
    groups: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(answered(row))
    return {name: (sum(told), len(told)) for name, told in sorted(groups.items())}


def by_fault(row: Mapping[str, Any]) -> str:
    """Key: the fault that was injected."""
    return row["truth"]["fault"]


def by_trainer(row: Mapping[str, Any]) -> str:
    """Key: what trained."""
    return row["truth"]["trainer"]


def by_confidence(row: Mapping[str, Any]) -> str:
    """Key: how sure the answer was."""
    return (row["said"] or {}).get("confidence", "no answer")


def interval(right: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share: Wilson, J. Am. Stat. Assoc. 22 (1927) 209."""
    if not of:
        return 0.0, 1.0
    share, spread = right / of, _Z * _Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def missed(row: Mapping[str, Any]) -> str:
    """One line of a job whose answer is wrong somewhere; empty where all is right."""
    wrong = [name for name in FIELDS if row["right"][name] is False]
    if not wrong:
        return ""
    said, truth = row["said"] or {}, row["truth"]
    return (
        f"{row['name']}{_job(truth)}: missed {', '.join(wrong)}; "
        f"said {said.get('outcome')} {said.get('shape')} {said.get('cause')} onset {said.get('onset')} "
        f"culprits {said.get('culprits')}; truth {truth['outcome']} {truth['shape']} onset {truth['onset']} "
        f"culprits {truth['culprits']}"
    )


def _job(truth: Mapping[str, Any]) -> str:
    """What the lab knows of a job; a label of a maker has none of it."""
    return f" {truth['fault']} {truth['trainer']} x{truth['ranks']}" if truth.get("fault") else ""


def table(rows: Sequence[Mapping[str, Any]], *, verbose: bool = False) -> str:
    """Shares by field, by fault, by trainer, and what each confidence is worth."""
    lines = [line for line in map(missed, rows) if line] if verbose else []
    lines += [f"{len(rows)} jobs", *_lines(shares(rows))]
    for title, key in (("fault", by_fault), ("trainer", by_trainer), ("confidence", by_confidence)):
        lines += [f"by {title} (outcome and shape)", *_lines(grouped(rows, key))]
    return "\n".join(lines)


def _lines(found: Mapping[str, tuple[int, int]]) -> list[str]:
    return [f"  {name:18} {share(*told)}" for name, told in found.items()]


def share(right: int, of: int) -> str:
    """`12/16 = 75 % (51-90)`; only the counts where there is nothing to divide by."""
    low, high = interval(right, of)
    return f"{right}/{of}" + (f" = {100 * right / of:.0f} % ({100 * low:.0f}-{100 * high:.0f})" if of else "")
