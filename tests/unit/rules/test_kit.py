"""What a rule is written with: its declaration, its proof and its onset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from msgspec import defstruct

from forensics.declared import named
from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import Rule, load, rule
from forensics.report.pages.catalogue import thresholds
from forensics.rules._errors import short
from forensics.rules.kit import onset_at, proof, times
from forensics.store.run import Run
from forensics.values import replace

PLACE = Evidence("a.log", quote="loss = nan")
ROW = {"source": "a.log", "line": 4, "byte": None, "seq": 3, "name": "loss", "raw_name": "train/loss", "value": 2.5,
       "value_class": "finite", "step": None, "gstep": 70, "at": 70, "rank": 1, "t_ns": 9}  # fmt: skip


def roles(*places: Evidence) -> list[str]:
    first, *more = places
    return [str(evidence.role) for evidence in proof(first, *more)]


def test_the_first_place_proves_and_the_others_are_related() -> None:
    related = replace(PLACE, role=EvidenceRole.RELATED)
    assert roles(related, PLACE, related) == ["primary", "related", "related"]


def test_a_place_that_contradicts_goes_on_contradicting() -> None:
    assert roles(PLACE, replace(PLACE, role=EvidenceRole.CONTRADICTS)) == ["primary", "contradicts"]


def test_a_row_is_one_of_metrics_and_nothing_is_left_out() -> None:
    (shown,) = proof(ROW, None)
    assert (shown.quote, shown.place, shown.step) == ("train/loss = 2.5 at step 70", "a.log:4", 70)


@pytest.mark.parametrize(
    ("kept", "printed", "said"),
    [
        ("step_time_s", "step_ms", "step_ms = 1250 at step 70"),
        ("step_time_s", "ms_per_batch", "ms_per_batch = 1250 at step 70"),
        ("step_time_s", "step_time", "step_time = 1.25 at step 70"),
        ("rms_s", "rms_s", "rms_s = 1.25 at step 70"),
        ("step_time_ms", "step_time_ms", "step_time_ms = 1.25 at step 70"),
        ("mem_gib", "mem", "mem = 1.25 GiB at step 70"),
    ],
)
def test_a_number_that_is_kept_in_another_unit_is_quoted_in_that_of_its_name_or_with_its_own(
    kept: str, printed: str, said: str
) -> None:
    assert proof({**ROW, "name": kept, "raw_name": printed, "value": 1.25})[0].quote == said


def test_counts_are_words_of_one_and_of_many() -> None:
    assert [times(count) for count in (1, 2)] == ["once", "2 times"]


@pytest.mark.parametrize(
    ("letters", "cut"),
    [
        ("w" * 80 + " " + "v" * 79, "w" * 80 + " " + "v" * 79),
        ("w" * 80 + " " + "v" * 80, "w" * 80 + " …"),
        ("w" * 161, "w" * 158 + " …"),
    ],
)
def test_a_title_is_cut_between_words(letters: str, cut: str) -> None:
    assert short(letters) == cut


def test_an_onset_has_the_step_that_is_counted_over_all_else_the_one_of_the_row() -> None:
    assert onset_at(ROW, 60) == Onset(step=70, t_ns=9, rank=1, step_lo=60)
    assert onset_at({"step": 5, "start_ns": 8, "rank": None}) == Onset(step=5, t_ns=8)


@rule("LRN900 declared", needs=("metrics",), severity="warning", confidence="low", cause="plateau", causal="context")
def declared(_run: Run) -> Iterator[Finding]:
    yield declared.finding("said", "because", (PLACE,))
    yield declared.finding("said", "because", (PLACE,), severity="error", causal="root", shape="nan", culprits=(2,))


def test_a_finding_is_as_its_rule_declares() -> None:
    usual = next(iter(declared(Run("empty"))))
    assert (usual.rule, usual.shape, usual.severity) == ("LRN900", Shape.LEARNING, Severity.WARNING)
    assert (usual.confidence, usual.cause, usual.causal) == (Confidence.LOW, "plateau", Causal.CONTEXT)


def test_the_tables_of_a_rule_are_words_or_a_tuple_of_names() -> None:
    assert rule("LRN901 of-words", "metrics events")(declared.find).needs == ("metrics", "events")
    assert declared.needs == ("metrics",)


def test_a_finding_begins_where_its_first_proof_is_unless_it_says_otherwise() -> None:
    places = proof(ROW, {**ROW, "gstep": 80})
    assert declared.finding("said", "because", places).onset == Onset(step=70, t_ns=9, rank=1)
    assert declared.finding("said", "because", places, Onset(step=60)).onset == Onset(step=60)
    assert declared.finding("said", "because", places, Onset()).onset == Onset()


def test_what_a_finding_says_itself_goes_before_its_declaration() -> None:
    own = list(declared(Run("empty")))[1]
    assert (own.severity, own.causal, own.shape, own.culprits) == (Severity.ERROR, Causal.ROOT, Shape.NAN, (2,))


def test_a_finding_that_nobody_grades_is_a_fault_of_the_rule() -> None:
    bare = Rule("LRN901", "bare", Shape.LEARNING, (), declared.find, None, "here")
    with pytest.raises(TypeError):
        bare.finding("said", "because", (PLACE,))


def test_a_name_that_stands_for_nothing_is_refused() -> None:
    assert named({"confidence": "high", "cause": "high"}) == {"confidence": Confidence.HIGH, "cause": "high"}
    with pytest.raises(ValueError, match="grave"):
        named({"severity": "grave"})


def test_a_rule_has_its_page_in_a_file_beside_its_module() -> None:
    near = next(one for one in load("rules").rules if one.id == "SLO003")
    assert near.doc.startswith("SLO003 step-time-ramp: steps became slower and slower, without a jump.\n")


@dataclass(frozen=True)
class Thresholds:
    records: int = 3


@rule("LRN902 with-thresholds", needs=("metrics",), severity="info", confidence="low")
def with_thresholds(_run: Run, cfg: Thresholds) -> Iterator[Finding]:
    yield with_thresholds.finding("said", str(cfg.records), (PLACE,))


def test_the_thresholds_of_a_rule_are_the_class_of_its_second_parameter() -> None:
    assert (with_thresholds.id, with_thresholds.config, declared.config) == ("LRN902", Thresholds, None)
    assert [one.because for one in with_thresholds(Run("empty"), Thresholds(9))] == ["9"]


def test_types_of_thresholds_read_alike_whether_annotations_are_text_or_values() -> None:
    kinds = [("share", float, 0.5), ("names", tuple[str, ...], ())]
    by_value = replace(with_thresholds, config=defstruct("Limits", kinds, frozen=True))
    assert [told[:2] for told in thresholds(by_value)] == [("share", "float"), ("names", "tuple[str, ...]")]
    assert thresholds(with_thresholds) == (("records", "int", 3),)


@rule("LRN903 of-something", about=lambda run: run.name or None, needs=("metrics",), severity="info", confidence="low")
def of_something(_run: Run, name: str, cfg: Thresholds) -> Iterator[Finding]:
    yield of_something.finding(name, str(cfg.records), (PLACE,))


def test_a_rule_gets_what_it_is_about_and_finds_nothing_without_it() -> None:
    assert [(one.title, one.because) for one in of_something(Run("named"), Thresholds(9))] == [("named", "9")]
    assert list(of_something(Run(""))) == []
    assert of_something.config is Thresholds


def test_the_shape_of_a_rule_is_that_of_its_id_unless_it_says_another() -> None:
    shapes = {one.id: one.shape for one in load("rules").rules}
    assert (of_something.shape, shapes["OOM007"], shapes["RLX008"]) == (Shape.LEARNING, Shape.OOM, Shape.LEARNING)
    assert shapes["RLX010"] is Shape.NAN
