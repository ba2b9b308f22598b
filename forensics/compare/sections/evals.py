"""Evaluation results of two runs: whether they were the same test, the real differences, and their likely causes."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.analyses.evals.curves import eval_curves
from forensics.analyses.evals.results import Row
from forensics.compare.decide import Answer
from forensics.compare.diff import SectionKind
from forensics.compare.evals.comparison import Pair, compare_all
from forensics.compare.evals.words import cause_of, facts_of, headline_of, notes_of, words_of
from forensics.compare.model import Options, Section
from forensics.model import Evidence, EvidenceRole, Locator, Number
from forensics.store.run import Run
from forensics.values import named

_TITLE = "Evaluation"
#: A difference of a share below this, or of another value below the relative one, is called no change.
_SAME_SHARE, _SAME_RELATIVE = 0.02, 0.05
_MOST_ROWS = 2_000


def compare(bases: Sequence[Run], cand: Run, options: Options) -> Section | None:
    """Compare the evaluation results of a candidate with those of every baseline that has any."""
    bases = [base for base in bases if not _is_empty(base)]
    if _is_empty(cand) or not bases:
        return None
    pairs = compare_all(bases, cand)
    if options.metric is not None and any(p.key[1] == options.metric for p in pairs):
        pairs = tuple(p for p in pairs if p.key[1] == options.metric)
    if not pairs:
        if all(_has_results(run) for run in (bases[0], cand)):
            return Section("evals", _TITLE, Answer.INCONCLUSIVE, "the runs have no task and metric in common")
        return None
    answer = _answer(pairs)
    real = [p for p in pairs if p.significant]
    causes = cause_of(bases, cand, real) if real else ()
    cause = words_of(causes) if real else None
    shown = min(real or pairs, key=lambda p: (p.worse is not True, p.p_holm if p.p_holm is not None else 2.0))
    return Section(
        name="evals",
        title=_TITLE,
        answer=answer,
        headline=headline_of(answer, pairs),
        facts=facts_of(pairs),
        notes=notes_of(pairs, cause, explained=bool(causes)),
        numbers=_numbers(pairs),
        rows=tuple(_row(p) for p in pairs[:_MOST_ROWS]),
        evidence=(_evidence(shown.base, EvidenceRole.RELATED), _evidence(shown.cand, EvidenceRole.PRIMARY)),
        metric=shown.name,
        change=shown.delta,
        interval=shown.tested.interval if shown.tested else None,
        min_detectable=shown.tested.detectable if shown.tested else None,
    )


def _is_empty(run: Run) -> bool:
    return not _has_results(run) and not eval_curves(run)


def _has_results(run: Run) -> bool:
    return any(run.scan(table).head(1).collect().height > 0 for table in ("evals", "eval_samples"))


def _answer(pairs: Sequence[Pair]) -> Answer:
    real = [p for p in pairs if p.significant]
    if any(p.worse for p in real):
        return Answer.REGRESSION
    if any(p.worse is False for p in real):
        return Answer.IMPROVEMENT
    family = [p for p in pairs if p.p_holm is not None]
    whole = all(p.comparable for p in pairs) and not real
    return Answer.NO_CHANGE if family and whole and all(_is_same(p) for p in family) else Answer.INCONCLUSIVE


def _is_same(pair: Pair) -> bool:
    assert pair.tested is not None
    level = abs(float(pair.base["value"]))
    allowed = _SAME_SHARE if level <= 1 else _SAME_RELATIVE * level
    return all(abs(end) <= allowed for end in pair.tested.interval)


def _numbers(pairs: Sequence[Pair]) -> dict[str, float | int | str | None]:
    real = [p for p in pairs if p.significant]
    return {
        "metrics": len(pairs),
        "tested": sum(p.p_holm is not None for p in pairs),
        "worse": sum(p.worse is True for p in real),
        "better": sum(p.worse is False for p in real),
        "not_comparable": sum(not p.comparable for p in pairs),
        "paired": sum(p.documents is not None for p in pairs),
    }


def _row(pair: Pair) -> dict[str, Number | None]:
    unlike = "; ".join(f"{u.words} ({u.base_place}; {u.cand_place})" for u in pair.settings.blocks)
    return {
        **dict(zip(("task", "metric", "filter"), pair.key, strict=True)),
        "base": pair.base["value"],
        "cand": pair.cand["value"],
        **named(pair, "delta p=tested.p p_holm se=tested.se min_detectable=tested.detectable method=tested.method"),
        **named(pair, "documents=tested.n baselines lost=tested.fell won=tested.rose"),
        "in_group": int(pair.member),
        "not_comparable": unlike or None,
    }


def _evidence(row: Row, role: EvidenceRole) -> Evidence:
    error = "" if row["stderr"] is None else f" ± {row['stderr']:.3g}"
    return Evidence(
        source=row["source"],
        locator=Locator(line=row["line"], byte=row["byte"]),
        quote=f"{row['task']} {row['metric']} = {row['value']:.6g}{error}",
        step=row["step"],
        name=f"{row['task']} {row['metric']}",
        value=row["value"],
        role=role,
    )


SECTION = SectionKind("evals", 20, compare)
