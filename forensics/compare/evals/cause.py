"""Which change between two runs most plausibly made an evaluation differ, by the audit of their settings."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.analyses.evals.settings import generates
from forensics.compare.config.audit import Difference, audit_all
from forensics.compare.evals.comparison import Pair
from forensics.store.run import Run

_MORE = 2


def cause_of(bases: Sequence[Run], cand: Run, real: Sequence[Pair]) -> tuple[Difference, ...]:
    """Give differences of configuration that can act on the metrics that really differ, the most plausible first.

    Decoding acts only on tasks that generate.
    """
    generated = any(generates(pair.base, pair.cand) for pair in real)
    return tuple(d for d in audit_all(bases, cand).causes if generated or d.family != "decoding")


def words_of(causes: Sequence[Difference]) -> str:
    """Say what most likely caused it, with both places; or that nothing on disk differs, and what to record."""
    if not causes:
        return (
            "nothing recorded on disk differs that could cause it; next time record the configuration, the hashes of "
            "data and tokenizer, and pip freeze"
        )
    first = causes[0]
    places = "; ".join(e.place for e in (first.base_evidence, first.cand_evidence) if e is not None)
    also = f"; also {', '.join(f'{d.what} {d.base} → {d.cand}' for d in causes[1 : 1 + _MORE])}" if causes[1:] else ""
    where = f" ({places})" if places else ""
    return f"most plausible cause: {first.family}: {first.what} {first.base} → {first.cand}{where}{also}"
