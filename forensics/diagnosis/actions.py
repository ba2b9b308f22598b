"""What to do about a verdict: the actions of its cause that fit the run, its settings and what it computed on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from forensics.action import Action, Setting
from forensics.analyses.memory.series import MEANINGS
from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.snapshots.per_device import snapshots
from forensics.case.backend import backend
from forensics.case.checkpoints import known
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import places, row_of_exception, words_of
from forensics.case.errors.raised import died_in, raised_in
from forensics.case.series import index_of, keys_of, metric_names
from forensics.case.settings import settings
from forensics.case.trainers import trainers
from forensics.case.world import world
from forensics.diagnosis.open_ends import at_an_open_end
from forensics.knowledge.causes import FIX, Cause, Remedy, causes, filled
from forensics.knowledge.doing import part_of
from forensics.knowledge.errors import ErrorLine, row_for, row_of
from forensics.knowledge.libraries import changed, installed_by, is_library_frame, package_of, short_frame
from forensics.knowledge.vocabulary import stands_for
from forensics.model import Finding, Outcome, Shape, Verdict
from forensics.patterns import lazily
from forensics.store.run import Run
from forensics.values import firsts, replace

#: Beyond the first ones the rest of a list is not read.
MOST = 4
#: Pieces of a run that a command may name without quotes of its own.
_CONTROL = lazily(r"[\x00-\x1f\x7f-\x9f]")
#: An advice quotes so many characters of an error.
_LONGEST = 160
#: An exception as its last line has it, wherever a launcher's words end.
_EXCEPTION = lazily(r"(?:^|\s)(?P<class>(?:[A-Za-z_]\w*\.)*[A-Z]\w*[a-z]\w*): (?P<message>\S.*)")
_HOST_FAMILY = "host_memory"
#: The backend of a run that left no sign of one.
_UNKNOWN = "unknown"
#: Finite losses from which on a number was lost on the course and not at once.
_LATER = 2
#: A first loss above it is no learning rate's doing: a sum over a text, an image or a clip stays below it.
_VAST_LOSS = 1e4


class Situation(Struct, frozen=True):
    """What conditions ask for.

    `names` are those of the run's metrics. `on` is the backend or `unknown`, whose memory it is, `ranks`, `saves`,
    `no_snapshot`, `untimed` and the like; `line` is the error line.
    """

    on: frozenset[str]
    trainers: frozenset[str]
    line: ErrorLine | None
    beside: frozenset[str]
    settings: Mapping[str, Setting]
    values: Mapping[str, str]
    names: tuple[str, ...] = ()


def actions(run: Run, verdict: Verdict, findings: Sequence[Finding]) -> tuple[Action, ...]:
    """Give what to do, the first thing first; nothing for a verdict without a cause that anybody described."""
    if not verdict.cause:
        return ()
    alike = (f for f in findings if f.shape is verdict.shape and f.cause == verdict.cause)
    lead = next((f for f in alike if f.identity == verdict.identity), None)
    found = causes().get(verdict.cause)
    line = _line(lead, _raised(run, lead), verdict.cause)
    if found is None:
        return () if line is None else (Action(line.fix, line.source),)
    now = _situation(run, verdict, lead, line, findings)
    # the advice of an error line may be an action of its cause
    return tuple(firsts(_told(found, now), lambda action: action.text)[:MOST])


def advice(run: Run, verdict: Verdict, findings: Sequence[Finding]) -> tuple[Action, ...]:
    """Give what to do about a verdict; where nothing was found and nothing can be said, about logs that only end."""
    if verdict.outcome is Outcome.CANNOT_SAY:
        return () if findings else at_an_open_end(run)
    return actions(run, verdict, findings)


def advised(run: Run, verdict: Verdict, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Give the findings with what may have brought the cause of each about, and what to do about it.

    The commands that their rules name follow; a rule's own words stay where nobody described the cause.
    """
    made: list[Finding] = []
    for finding in findings:
        same = {name: getattr(finding, name) for name in ("cause", "shape", "onset", "culprits", "identity")}
        told = tuple(action.text for action in actions(run, replace(verdict, **same), findings))
        known = causes().get(finding.cause)
        likely = finding.likely or (known.likely if known is not None else ())
        after = (*told, *filter(_is_command, finding.next)) if told else finding.next
        made.append(replace(finding, likely=likely, next=after))
    return tuple(made)


def _line(lead: Finding | None, raised: Failure | None, cause: str) -> ErrorLine | None:
    """The row of the error line that the lead finding rests on, where that row gives the cause itself."""
    proof = lead.evidence if lead is not None else ()
    told = (row for e in proof for row in (row_of(e.name or "", e.quote), row_of("", e.quote)))
    if raised is not None:
        exception, message = _spoken(raised)
        frames = places(raised.stack, raised.statement)
        thrown = row_of_exception(exception, message, frames, more=raised.more) if exception else None
        if thrown is not None and thrown.cause == raised.cause:
            return thrown
    return next((one for one in told if one is not None and one.cause == cause), None)


def _spoken(raised: Failure) -> tuple[str, str]:
    """The class and the message of an error; those that its line quotes where a row for lines took it."""
    named = _EXCEPTION.search(raised.quote)
    if raised.exception or named is None:
        return raised.exception, raised.message
    return named["class"], named["message"]


def _words(line: ErrorLine | None, raised: Failure | None) -> dict[str, str]:
    """What an error line and its exception say: the groups of its pattern, the frame and the statement."""
    if raised is None:
        return {}
    exception, message = _spoken(raised)
    text = words_of(exception, message, raised.more) if exception else raised.quote
    hit = line.compiled.search(text) if line is not None else None
    inner = next((one for one in raised.stack if not stands_for("passing_frame", one)), next(iter(raised.stack), ""))
    own = next((one for one in raised.stack if not is_library_frame(one)), "")
    tells = inner == next(iter(raised.stack), "") and not raised.statement.startswith("raise ")
    said = hit.groupdict() if hit is not None else {}
    named = {name.partition("__")[0]: words for name, words in said.items() if words}
    known = {
        "said": raised.own_words,
        "package": package_of(inner),
        **named,
        "frame": short_frame(inner),
        "own": short_frame(own) if own != inner else "",
        "statement": raised.statement if tells else "",
    }
    quoted = {name: _cut(_CONTROL.sub(" ", words).strip()) for name, words in known.items()}
    part = part_of(raised.stack)
    asked = {"look": part.asks, "look_there": part.asks if part.stack else ""}
    return quoted | asked | {"changed": changed(text), "installs": installed_by(named.get("module", ""))}


def _cut(words: str) -> str:
    """Cut what an advice quotes to what leaves room for itself."""
    return words.rstrip(" .:;") if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _situation(
    run: Run, verdict: Verdict, lead: Finding | None, line: ErrorLine | None, findings: Sequence[Finding]
) -> Situation:
    checkpoint, onset, raised = verdict.checkpoint, verdict.onset, _raised(run, lead)
    counted = lead.numbers.get("finite_losses_before") if lead is not None else None
    before = counted if isinstance(counted, int) else _LATER
    stack = raised.stack if raised is not None else ()
    own_code = not all(map(is_library_frame, stack))
    waits = bool(stack) and stands_for("waiting_frame", stack[0])
    dies = lead is not None and lead.shape is Shape.CRASH and (raised is None or not raised.exception)
    native = died_in(run, raised, verdict.culprits) if dies else ()
    own_call = next((one for one in native if not is_library_frame(one)), "")
    rank = verdict.culprits[0] if len(verdict.culprits) == 1 else onset.rank
    path = checkpoint.path if checkpoint is not None and checkpoint.path is not None else ""
    words = _words(line, raised)
    values = {
        **words,
        "run": shlex.quote(run.name),
        "step": "" if onset.step is None else str(onset.step),
        "rank": "" if rank is None else str(rank),
        "ranks": ", ".join(map(str, sorted(verdict.culprits)[:8])),
        "checkpoint": "" if not path or _CONTROL.search(path) else shlex.quote(path),
        "saved": "" if checkpoint is None else str(checkpoint.step),
        "next": next((step for step in (lead.next if lead is not None else ()) if not _is_command(step)), ""),
        # a message that says what to do needs no look into the versions
        "library": raised_in(raised) if raised is not None and not words.get("asks") else "",
        "died_in": short_frame(native[0]) if native else "",
        "died_below": own_call if own_call != next(iter(native), "") else "",
        "vast_loss": _vast_loss(run) if before == 1 else "",
        "show_nan": next((one.nan.show for one in trainers(run) if one.nan.show), ""),
    }
    fixing = line or row_for(verdict.cause)
    values["fix"] = values.get("changed") or (filled(fixing.fix, values) if fixing is not None else "") or ""
    device = backend(run) or _UNKNOWN
    by_trainers = frozenset(one.name for one in trainers(run))
    trained = any(name is not None and not name.startswith("eval") for name in keys_of(run)["name"])
    states = {
        "a_trainer": bool(by_trainers),
        "no_trainer": not by_trainers,
        "ranks": len(world(run)) > 1,
        "saves": (saves := not known(run).is_empty()),
        "no_saves": not saves,
        "no_snapshot": not snapshots(run),
        "untrained": not trained,
        "untimed": trained and index_of(run).table.shared("t_ns").is_null().all(),
        "at_once": before < _LATER,
        "later": before >= _LATER,
        "begun": before == 1,
        "unbegun": before != 1,
        "unseen": before == 0 and (onset.step is None or onset.step > 1),
        "own_code": own_code,
        "no_frames": not stack,
        "no_stack": not native,
        "no_words": raised is not None and raised.code == "traceback" and not raised.exception,
        "waits_for_data": waits and part_of(stack).part == "data",
        "waits": waits and part_of(stack).part != "data",
    }
    return Situation(
        on=frozenset({device, _memory(verdict, lead, line), *(s for s, holds in states.items() if holds)} - {""}),
        trainers=by_trainers,
        line=line,
        beside=frozenset(f.cause for f in findings if f is not lead),
        settings=settings(run),
        values=MappingProxyType(values),
        names=tuple(metric_names(run)["raw_name"].drop_nulls().unique(maintain_order=True).to_list()),
    )


def _vast_loss(run: Run) -> str:
    """The first loss of a run that is lost, where it is too large for any fresh model; else empty."""
    found = nan_onset(run)
    first = found.first_loss if found is not None else None
    return f"{first:g}" if first is not None and first > _VAST_LOSS else ""


def _raised(run: Run, lead: Finding | None) -> Failure | None:
    """The error of a crash, or the interrupt, on which the lead finding rests."""
    if lead is None or lead.shape not in {Shape.CRASH, Shape.STOPPED}:
        return None
    proof = lead.evidence[0]
    place = (proof.source, proof.locator.line, proof.locator.byte)
    return next((f for f in standing(run) if (f.source, f.line, f.byte) == place), None)


def _is_command(step: str) -> bool:
    return step.startswith(("forensics ", "torchrun "))


def _memory(verdict: Verdict, lead: Finding | None, line: ErrorLine | None) -> str:
    """Whose memory a verdict speaks of: `host` or `device`; empty for other verdicts."""
    if verdict.shape is not Shape.OOM:
        return ""
    if (said := line or row_for(verdict.cause)) is not None:
        return "host" if said.family == _HOST_FAMILY else "device"
    told = (MEANINGS.get(e.name or "") for e in (lead.evidence if lead is not None else ()))
    first = next((meaning for meaning in told if meaning is not None), None)
    return "host" if first is not None and first.is_host else "device"


def _told(cause: Cause, now: Situation) -> Iterator[Action]:
    for remedy in cause.actions:
        setting = now.settings.get(remedy.setting)
        if not _fits(remedy, now) or not remedy.is_about(setting.value if setting is not None else None):
            continue
        text = remedy.words(now.values)
        if text is None:
            continue
        source = now.line.source if remedy.text == FIX and now.line is not None else remedy.source
        command = filled(remedy.command, now.values) or None
        value = remedy.sets(setting.value) or None if setting is not None else None
        yield Action(text[:1].upper() + text[1:], source, command, setting, value)


def _fits(remedy: Remedy, now: Situation) -> bool:
    asked = (
        (remedy.on, now.on),
        (remedy.trainer, now.trainers),
        (remedy.line, frozenset({now.line.id} if now.line is not None else ())),
        (remedy.beside, now.beside),
    )
    values = {name: setting.value for name, setting in now.settings.items()}
    present = all(not wanted or present.intersection(wanted) for wanted, present in asked)
    told = not remedy.named or any(re.search(remedy.named, name) for name in now.names)
    told = told and not (remedy.unnamed and any(re.search(remedy.unnamed, name) for name in now.names))
    return present and told and not now.beside.intersection(remedy.apart) and remedy.is_given(values)
