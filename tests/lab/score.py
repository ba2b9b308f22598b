"""An answer against the truth: outcome, shape, onset, culprits, cause, first action, and how sure it was."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

FIELDS = ("outcome", "shape", "onset", "culprits", "cause", "action")


def scored(name: str, place: Path, truth: dict[str, Any], program: str) -> dict[str, Any]:
    """Ask `forensics triage` and compare; a field that the truth leaves open is None."""
    command = [*shlex.split(program), "triage", str(place), "--format", "json", "--exit-zero"]
    answer = subprocess.run(command, capture_output=True, timeout=120, check=False)
    try:
        document = json.loads(answer.stdout)
    except json.JSONDecodeError:
        return {"name": name, "truth": truth, "verdict": None, "right": dict.fromkeys(FIELDS, False)}
    verdict = document.get("verdict") or document["runs"][-1]["verdict"]
    return {"name": name, "truth": truth, "verdict": verdict, "right": _right(truth, verdict, document)}


def _right(truth: dict[str, Any], verdict: dict[str, Any], document: dict[str, Any]) -> dict[str, bool | None]:
    outcome, shape = (
        verdict["outcome"] in truth["outcome"].split("|"),
        str(verdict["shape"]).lower() in truth["shape"].split("|"),
    )
    onset = (verdict.get("onset") or {}).get("step")
    failed = truth["outcome"].split("|")[0] == "failed"
    actions = verdict.get("actions") or [
        {"text": " ".join(f["next"])} for f in document.get("findings", []) if f["shape"] == verdict["shape"]
    ]
    first = actions[0]["text"].lower() if actions else ""
    return {
        "outcome": outcome,
        "shape": shape if failed else (shape or outcome),
        "onset": abs(onset - truth["onset"]) <= truth["within"] if truth["onset"] is not None and onset is not None
        else (False if truth["onset"] is not None else None),
        "culprits": verdict["culprits"] == truth["culprits"] if truth["culprits"] is not None else None,
        "cause": verdict["cause"] in truth["causes"] if failed and truth["causes"] else None,
        "action": any(word in first for word in truth["says"]) if failed and truth["says"] else None,
    }  # fmt: skip


def table(rows: list[dict[str, Any]], *, verbose: bool = False) -> str:
    """Shares by field, by fault, by trainer, and what each confidence is worth."""
    lines = []
    if verbose:
        for row in rows:
            missed = [name for name in FIELDS if row["right"][name] is False]
            if missed:
                verdict = row["verdict"] or {}
                lines.append(
                    f"{row['name']} {row['truth']['fault']} {row['truth']['trainer']} x{row['truth']['ranks']}: missed {', '.join(missed)}; "
                    f"said {verdict.get('outcome')} {verdict.get('shape')} {verdict.get('cause')} onset {(verdict.get('onset') or {}).get('step')} "
                    f"culprits {verdict.get('culprits')}; truth {truth_words(row['truth'])}"
                )
    lines.append(f"{len(rows)} jobs")
    for name in FIELDS:
        told = [row["right"][name] for row in rows if row["right"][name] is not None]
        lines.append(f"  {name:9} {_share(told)}")
    lines.append(
        f"  all right {_share([all(v is not False for k, v in row['right'].items() if k not in {'cause', 'action'}) for row in rows])}"
    )
    for key in ("fault", "trainer"):
        groups: dict[str, list[bool]] = defaultdict(list)
        for row in rows:
            groups[row["truth"][key]].append(bool(row["right"]["outcome"] and row["right"]["shape"]))
        lines.append(f"by {key} (outcome and shape)")
        lines += [f"  {name:16} {_share(told)}" for name, told in sorted(groups.items())]
    sure: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in rows:
        sure[(row["verdict"] or {}).get("confidence", "none")][
            bool(row["right"]["outcome"] and row["right"]["shape"])
        ] += 1
    lines += ["by confidence", *(f"  {name:16} {c[True]}/{c.total()}" for name, c in sorted(sure.items()))]
    return "\n".join(lines)


def truth_words(truth: dict[str, Any]) -> str:
    """One line of the truth."""
    return f"{truth['outcome']} {truth['shape']} onset {truth['onset']} culprits {truth['culprits']}"


def _share(told: list[bool]) -> str:
    return f"{sum(told)}/{len(told)}" + (f" = {100 * sum(told) / len(told):.0f} %" if told else "")
