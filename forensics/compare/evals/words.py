"""The words of the evaluation section: a headline, a line for each task that matters, the cause, the next step."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.analyses.evals.results import Row, members_of
from forensics.analyses.evals.settings import Unlike, generates
from forensics.compare.config.audit import Difference, audit_all
from forensics.compare.decide import Answer
from forensics.compare.evals._logged import LOGGED
from forensics.compare.evals.comparison import Pair, identical
from forensics.store.run import Run

_LINES, _NOTES, _MORE_CAUSES = 12, 6, 2


def headline_of(answer: Answer, pairs: Sequence[Pair]) -> str:
    """Say the result in one sentence."""
    family = [p for p in pairs if p.p_holm is not None]
    real = [p for p in family if p.significant]
    first = min(real, key=lambda p: p.p_holm or 0.0, default=None)
    if answer is Answer.REGRESSION and first is not None:
        worst = min((p for p in real if p.worse), key=lambda p: p.p_holm or 0.0)
        count = sum(p.worse is True for p in real)
        real_ = f"{change_of(worst)}, p {_p(worst.p_holm)} (Holm)"
        risen = f" (better in {len(real) - count})" if len(real) > count else ""
        return f"worse in {count} of {len(family)} metrics{risen}, and it is real: {real_}"
    if answer is Answer.IMPROVEMENT and first is not None:
        return f"better in {len(real)} of {len(family)} metrics: {change_of(first)}, p {_p(first.p_holm)} (Holm)"
    blocked = [p for p in pairs if not p.comparable]
    if not family:
        why = blocked[0].settings.blocks[0].words if blocked else "no metric has an error or a number of documents"
        return f"the evaluations cannot be compared: {why}"
    if answer is Answer.NO_CHANGE:
        return f"no difference in {len(family)} metrics, and none that matters could hide in the noise"
    if first is not None:
        return f"{change_of(first)} is real (p {_p(first.p_holm)}, Holm), but whether it is better is not known"
    unlike = f"; {len(blocked)} metrics are not comparable: {blocked[0].settings.blocks[0].words}" if blocked else ""
    finest = min(family, key=lambda p: p.tested.detectable / max(1e-9, abs(p.base["value"])) if p.tested else 1e9)
    seen = f"{finest.tested.detectable:.2g}" if finest.tested is not None else "?"
    return (
        f"no real difference in {len(family)} metrics; even the finest, {finest.name}, shows only changes "
        f"of {seen} and more{unlike}"
    )


def change_of(pair: Pair) -> str:
    """Give `task metric 0.61 → 0.55`."""
    return f"{pair.name} {pair.base['value']:.4g} → {pair.cand['value']:.4g}"


def facts_of(pairs: Sequence[Pair]) -> tuple[tuple[str, str], ...]:
    """Give a line for each metric that matters most: real ones, then by p, then those that are not comparable."""
    family = sorted((p for p in pairs if p.p_holm is not None), key=lambda p: (p.p_holm or 0.0, -abs(_z(p))))
    lines = [(_label(p), _line(p)) for p in family[:_LINES]]
    more = len(family) - _LINES
    if more > 0:
        lines.append(("more", f"{more} metrics with larger p"))
    inside = [p for p in pairs if p.member and p.tested is not None and p.worse and p.tested.p < 0.001]
    lines += [("member", _line(p)) for p in sorted(inside, key=lambda p: p.tested.p if p.tested else 1.0)[:3]]
    lines += [("not alike", text) for text in _blocked(pairs)[:_NOTES]]
    return tuple(lines)


def _label(pair: Pair) -> str:
    if pair.delta == 0:
        return "equal"
    word = "differs" if pair.worse is None else "worse" if pair.worse else "better"
    return word if pair.significant else f"{word}?"


def _line(pair: Pair) -> str:
    tested = pair.tested
    assert tested is not None
    low, high = tested.interval
    n = f", {tested.n} documents" if tested.n else ""
    flips = f", {tested.fell} lost and {tested.rose} won" if tested.fell is not None else ""
    shown = f"p {_p(tested.p)}" + (f", Holm {_p(pair.p_holm)}" if pair.p_holm is not None else "")
    return (
        f"{change_of(pair)} ({tested.delta:+.3g}, 95 % {low:+.3g} to {high:+.3g}), {shown}; {tested.method}{n}{flips}"
    )


def _blocked(pairs: Sequence[Pair]) -> list[str]:
    """Give each reason once, with the tasks it holds for and both places."""
    by_reason: dict[str, list[tuple[Pair, Unlike]]] = {}
    for pair in pairs:
        for unlike in pair.settings.blocks[:3]:
            by_reason.setdefault(unlike.words, []).append((pair, unlike))
    said: list[str] = []
    for words, held in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        tasks = list(dict.fromkeys(p.key[0] for p, _ in held))
        more = f" and {len(tasks) - 3} more" if len(tasks) > 3 else ""
        first = held[0][1]
        said.append(f"{words}: {', '.join(tasks[:3])}{more} ({first.base_place}; {first.cand_place})")
    return said


# Which change between two runs most plausibly made an evaluation differ, by the audit of their settings.


def cause_of(bases: Sequence[Run], cand: Run, real: Sequence[Pair]) -> tuple[Difference, ...]:
    """Give differences of configuration that can act on the metrics that really differ, the most plausible first.

    Decoding acts only on tasks that generate.
    """
    generated = any(generates(pair.base, pair.cand) for pair in real)
    return tuple(d for d in audit_all(bases, cand).causes if generated or d.family != "decoding")


def words_of(causes: Sequence[Difference]) -> str:
    """Name the most likely cause, with both places; or say that nothing on disk differs, and what to record."""
    if not causes:
        return (
            "nothing recorded on disk differs that could cause it; next time record the configuration, the hashes of "
            "data and tokenizer, and pip freeze"
        )
    first = causes[0]
    places = "; ".join(e.place for e in (first.base_evidence, first.cand_evidence) if e is not None)
    more = ", ".join(f"{d.what} {d.base} → {d.cand}" for d in causes[1 : 1 + _MORE_CAUSES])
    also = f"; also {more}" if more else ""
    where = f" ({places})" if places else ""
    return f"most plausible cause: {first.family}: {first.what} {first.base} → {first.cand}{where}{also}"


def notes_of(pairs: Sequence[Pair], cause: str | None, *, explained: bool) -> tuple[str, ...]:
    """Say what one must know to read the table, and what to do next; `explained` where the settings differ."""
    notes: list[str] = []
    if cause:
        notes.append(cause)
    care = list(dict.fromkeys(u.words for p in pairs for u in p.settings.care))
    if care:
        notes.append(f"may shift values a little: {'; '.join(care[:_NOTES])}")
    if silent := next((r for p in pairs for r in (p.base, p.cand) if _is_silent(r)), None):
        notes.append(f"whether the settings were equal cannot be checked: {silent['source']} does not state them")
    if identical(pairs):
        notes.append(f"all {len(pairs)} values are equal to the last digit: the same checkpoint, or cached responses")
    if not explained and (strange := next((p for p in pairs if p.unexplained), None)):
        notes.append(
            f"cause not recorded: {change_of(strange)}, though model and settings are recorded as equal; "
            "record library versions and environment next time"
        )
    family = [p for p in pairs if p.p_holm is not None]
    tasks = [p for p in family if p.key[0] != LOGGED]
    if tasks and all(p.documents is None for p in tasks):
        notes.append(
            "no samples on both sides: the test is conservative; lm_eval --log_samples finds far smaller changes"
        )
    if any(p.others for p in pairs):
        notes.append("of several results of one task the last common step, or the last, is compared")
    if any(not p.comparable for p in pairs):
        notes.append("run the evaluation again with equal settings where they are not alike; no p is given for them")
    return tuple(notes)


def _is_silent(row: Row) -> bool:
    """Whether a result states neither few-shot examples nor version of its task."""
    return row["task"] != LOGGED and row["fewshot"] is None and row["task_version"] is None and not members_of(row)


def _z(pair: Pair) -> float:
    return pair.tested.delta / pair.tested.se if pair.tested and pair.tested.se > 0 else 0.0


def _p(value: float | None) -> str:
    return "—" if value is None else "below 1e-12" if value < 1e-12 else f"{value:.2g}"
