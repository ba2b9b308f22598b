"""Scores that are no better than guessing, of tasks and of a run's own evaluations."""

from __future__ import annotations

from math import exp, log, sqrt

from forensics.analyses.evals.curves import EvalCurve, eval_curves, training_scores
from forensics.analyses.evals.results import Row, chance_of, courses
from forensics.analyses.learning.objective import reinforced
from forensics.case.curves.loss import Curve, curves
from forensics.knowledge.scores import is_of_none, is_of_pairs
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Evidence, Finding, Findings, Onset, Run, Struct, proof, rule
from forensics.stats.spread import Floats

#: Metrics that are the share of right answers.
_SHARES = frozenset(("acc", "acc_norm", "accuracy"))


class AtChance(Struct, frozen=True):
    """Thresholds of EVL012.

    Of results: tasks that must be known, or `fallen` of them where each had a result above chance before, and the
    standard errors within which a score is chance (5 %). Of a run's own evaluations: how many there are, by how much
    the training score rose, what share of it no evaluation reaches, what share of its rise they made. Of one beside a
    loss: what is left of that, from where it must come, and how far above exp(-loss) of the first record a score still
    is a guess; the first loss of a model of 10 classes is 2.3 to 2.5.
    Without a standard error or a number of documents a score is chance up to `around` above it, in `many` tasks.
    `pairs`: up to where a score of ordered pairs is a guess, whatever its first record is. Of two classes a loss begins
    within `coin` of ln(2), and `tosses` scores that all lie as near to a half as `pairs` are guesses.
    """

    tasks: int = 3
    fallen: int = 2
    errors: float = 2.0
    around: float = 0.04
    many: int = 5
    evaluations: int = 3
    rise: float = 0.3
    share: float = 0.6
    moves: float = 0.1
    left: float = 0.25
    from_loss: float = 1.0
    guess: float = 1.25
    pairs: float = 0.55
    coin: float = 0.1
    tosses: int = 5


@rule(
    "EVL012 eval-at-chance",
    "evals metrics",
    severity="warning",
    confidence="medium",
    cause="at_chance",
    causal="symptom",
)
def at_chance(run: Run, cfg: AtChance) -> Findings:
    """Report the last results when every task of known chance is at it, else evaluations that learned nothing."""
    own = [rows for key, rows in courses(run).items() if key[1] in _SHARES]
    percent = 100.0 if any(rows[-1]["value"] > 1 for rows in own) else 1.0
    of_one = [[{**row, "value": row["value"] / percent} for row in rows] for rows in own]
    told = [(rows, chance) for rows in of_one if (chance := chance_of(rows[-1]["task"])) is not None]
    known = [(rows[-1], chance) for rows, chance in told]
    tasks = {row["task"] for row, _ in known}
    sized = all(row["stderr"] is not None or row["n"] for row, _ in known)
    fell = sized and all(not _is_chance(rows[0], chance, cfg) for rows, chance in told)
    needed = cfg.fallen if fell else cfg.tasks if sized else cfg.many
    if len(tasks) < needed or not all(_is_chance(row, chance, cfg) for row, chance in known):
        if not known and (found := _own(run, cfg)) is not None:
            yield found
        return
    row, chance = known[0]
    yield at_chance.finding(
        f"all {len(tasks)} tasks with a known chance level score at chance: {row['task']} {row['value']:.3g},"
        f" chance {chance:g}",
        "no score is more than two standard errors above guessing"
        if sized
        else f"no score is more than {cfg.around:g} above guessing",
        proof(*(result_evidence(row) for row, _ in known[:4])),
        numbers={"tasks": len(tasks), "value": row["value"], "chance": chance},
    )


def _is_chance(row: Row, chance: float, cfg: AtChance) -> bool:
    error = row["stderr"]
    if error is None:
        if not row["n"]:
            return chance > 0 and row["value"] - chance <= cfg.around
        error = sqrt(chance * (1 - chance) / row["n"])
    return row["value"] - chance <= cfg.errors * error


def _own(run: Run, cfg: AtChance) -> Finding | None:
    """Evaluations of a training that learned, none of which is better than the model was before."""
    scores = [one for one in eval_curves(run) if one.higher]
    if not scores or reinforced(run):
        return None
    none = [c for c in scores if is_of_none(c.name) and len(c.values) >= cfg.tosses and c.values.max() <= 0]
    sunk = next((course for one in curves(run, "loss") if (course := _left(one, cfg)) is not None), None)
    if none and sunk is not None:
        return _not_better(none[0], 0.0, *sunk)
    beside = next((told for one in training_scores(run) if (told := _risen(one, cfg)) is not None), None)
    beside = _fallen(run, cfg, _is_toss(scores, cfg)) if beside is None and not training_scores(run) else beside
    if beside is None:
        return None
    low, high, what, course = beside
    if not (low == cfg.pairs and _is_toss(scores, cfg)) and not all(_stays(one, low, high, cfg) for one in scores):
        return None
    return _not_better(max(scores, key=lambda curve: len(curve.values)), low, what, course)


def _not_better(one: EvalCurve, low: float, what: str, course: tuple[Evidence, ...]) -> Finding:
    return at_chance.finding(
        f"the score of {len(one.values)} evaluations stays at {one.row(-1)['value']:.4g} ({one.name}) while {what}",
        "no evaluation is better than the model was before it learned: nothing of what it learned holds for them",
        proof(one.row(0), one.row(-1), *course),
        Onset(step=one.row(0)["at"]),
        cause="learned_for_training_only",
        causal="root",
        numbers={"evaluations": len(one.values), "best": float(one.values.max()), "before": low},
    )


def _left(curve: Curve, cfg: AtChance) -> tuple[str, tuple[Evidence, ...]] | None:
    """What a loss says that fell to next to nothing of its first record."""
    first, last = float(curve.values[0]), float(curve.values[-1])
    if not 0 <= last <= cfg.left * first:
        return None
    return f"{curve.raw_name} fell from {first:.4g} to {last:.4g}", proof(curve.row(-1))


_Beside = tuple[float, float, str, tuple[Evidence, ...]]


def _risen(one: EvalCurve, cfg: AtChance) -> _Beside | None:
    """The level of a training score before and after it rose, as shares."""
    values = _shares(one)
    first, last = cfg.pairs if is_of_pairs(one.name) else float(values[0]), float(values[-1])
    if last - first < cfg.rise:
        return None
    words = f"{one.name} of the training rose from {one.values[0]:.4g} to {one.values[-1]:.4g}"
    return first, last, words, proof(one.row(-1))


def _fallen(run: Run, cfg: AtChance, is_toss: bool) -> _Beside | None:  # noqa: FBT001 - what the scores say
    """The score of a guess, and that of one who knows, as a training loss that fell tells them."""
    for curve in curves(run, "loss"):
        first, last = float(curve.values[0]), float(curve.values[-1])
        of_two = is_toss and abs(first / log(2) - 1) <= cfg.coin
        if (of_two or first >= cfg.from_loss) and (sunk := _left(curve, cfg)) is not None:
            words, course = sunk
            return cfg.pairs if of_two else cfg.guess * exp(-first), exp(-last), words, course
    return None


def _is_toss(scores: list[EvalCurve], cfg: AtChance) -> bool:
    """Whether every value of every score is what a toss of a coin gives."""
    shares = [_shares(one) for one in scores]
    return all(len(v) >= cfg.tosses and 1 - cfg.pairs <= v.min() and v.max() <= cfg.pairs for v in shares)


def _stays(one: EvalCurve, low: float, high: float, cfg: AtChance) -> bool:
    values = _shares(one)
    best = float(values.max())
    is_low = 0 < best <= min(low, cfg.share * high)
    return is_low and len(values) >= cfg.evaluations and best - float(values[0]) <= cfg.moves * (high - low)


def _shares(one: EvalCurve) -> Floats:
    return one.values / (100.0 if float(one.values.max()) > 1 else 1.0)
