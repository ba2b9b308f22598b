"""The page of `nan-origin`: its words, its document, and that nothing of a hostile log acts in it."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import jsonschema
import pytest

from forensics.analyses.nan.origin import JudgedCheckpoint, NanOrigin, Rise
from forensics.model import Checkpoint, Coverage, Evidence, FileCoverage, FileStatus, Issue, Locator
from forensics.report.pages import nan_origin
from forensics.report.pages.nan_origin import Page
from forensics.values import replace

HOSTILE = "\x1b]0;x\x07 <b>|`##[error]` \u202e\udcff"
BLOWUP = NanOrigin(
    "optimization_blowup",
    412,
    "loss",
    411,
    Checkpoint(400, "out/step_400"),
    Rise("grad_norm", 405, float("inf")),
    "--resume out/step_400",
    (JudgedCheckpoint(400, "out/step_400", "clean", "saved before step 412"),),
    (Evidence("train.log", Locator(line=51), "step 412 loss nan", step=412, value=float("nan")),),
)


def page_of(origin: NanOrigin) -> Page:
    files = (FileCoverage("train.log", 90, 80, 10, FileStatus.PARTIAL, "text_log", format="nanogpt"),)
    return Page(origin, "runs/a", coverage=Coverage(files), issues=(Issue("train.log", "truncated", "cut"),))


def said(origin: NanOrigin, form: str = "text") -> str:
    return "\n".join(nan_origin.LAYOUT.render(page_of(origin), form))


def test_the_text_names_the_step_the_proof_and_the_restart() -> None:
    text = said(BLOWUP)
    assert text.startswith("NOT FINITE  optimization_blowup  runs/a\n")
    for words in ("step 412, loss", "step 411", "step 400, out/step_400", "--resume out/step_400", "train.log:51"):
        assert words in text
    assert "10 bytes; 1 issue" in text


@pytest.mark.parametrize(
    ("metric", "what"), [("grad_norm", "the gradient norm"), ("loss", "the loss"), ("lr", "the learning rate")]
)
def test_the_text_says_what_rose(metric: str, what: str) -> None:
    text = said(replace(BLOWUP, precursor=Rise(metric, 405, 3.0)))
    assert f"the optimization blew up: {what} rose before" in " ".join(text.split())


def test_the_document_keeps_to_its_schema_and_infinity_is_a_word() -> None:
    schema = json.loads((files("forensics.report") / "_schema/nan-origin-1.schema.json").read_text(encoding="utf-8"))
    for origin in (BLOWUP, NanOrigin("none"), NanOrigin("unknown")):
        jsonschema.validate(json.loads(said(origin, "json")), schema)
    assert json.loads(said(BLOWUP, "json"))["precursor"]["ratio"] == "Infinity"


@pytest.mark.parametrize(
    ("origin", "word"),
    [
        (NanOrigin("none"), "FINITE"),
        (NanOrigin("none", 5, "loss", 4), "RECOVERED"),
        (NanOrigin("unknown"), "CANNOT SAY"),
        (NanOrigin("unknown", None, "loss"), "NOT FINITE"),
        (NanOrigin("from_start", 1, "loss"), "NOT FINITE"),
    ],
)
def test_the_answer_in_a_word(origin: NanOrigin, word: str) -> None:
    assert said(origin).startswith(f"{word}  {origin.kind}")


def test_why_no_checkpoint_is_usable_is_told() -> None:
    dirty = (JudgedCheckpoint(500, "out/500", "dirty", "saved after the first NaN"),)
    origin = NanOrigin("from_start", 1, "loss", checkpoints=dirty)
    assert "the one of step 500 is tainted (saved after" in " ".join(said(origin).split())
    assert "none was found" in said(NanOrigin("from_start", 1, "loss"))


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_nothing_of_a_hostile_log_reaches_the_reader_raw(form: str) -> None:
    origin = NanOrigin(
        "data_or_numerics",
        2,
        HOSTILE,
        1,
        Checkpoint(1, HOSTILE),
        Rise(HOSTILE, 1, 2.0),
        HOSTILE,
        (JudgedCheckpoint(1, HOSTILE, "dirty", HOSTILE),),
        (Evidence(HOSTILE, Locator(line=1), HOSTILE),),
    )
    text = said(origin, form)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", text)
