"""The JSON documents: the contract's fields, the shipped schemas, NaN as a word, the same bytes every time."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from forensics.model import Report
from forensics.report import json_v1, payload
from forensics.values import replace


def schema(name: str) -> dict[str, Any]:
    return json.loads((files("forensics.report") / "_schema" / f"{name}.schema.json").read_text(encoding="utf-8"))


def document(report: Report) -> dict[str, Any]:
    return json.loads("".join(json_v1.render(report)))


@pytest.mark.parametrize("name", ["report-1", "nan-origin-1"])
def test_each_shipped_schema_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("which", ["failed", "healthy", "silent", "hostile"])
def test_every_report_keeps_to_the_schema(which: str, request: pytest.FixtureRequest) -> None:
    jsonschema.validate(document(request.getfixturevalue(which)), schema("report-1"))


def test_several_runs_are_written_one_by_one_as_the_whole_document_would_be(failed: Report, healthy: Report) -> None:
    hostile = replace(healthy, run='"runs": [\n\u2028 ##[x')
    for several in ([failed, healthy], [hostile, failed, hostile]):
        whole = payload.document(several) | {"fleet": json_v1.fleet_payload(several)}
        assert "\n".join(json_v1.render_many(several)) == json_v1.encoded(whole)
        assert len(list(json_v1.render_many(several))) == 2 + len(several)


def test_several_runs_keep_to_the_same_schema(failed: Report, healthy: Report) -> None:
    found = json.loads("".join(json_v1.render_many([failed, healthy])))
    jsonschema.validate(found, schema("report-1"))
    assert [run["run"] for run in found["runs"]] == ["runs/a", "runs/b"]


def test_a_document_without_a_verdict_is_refused_by_the_schema(failed: Report) -> None:
    broken = {key: value for key, value in document(failed).items() if key != "verdict"}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema("report-1"))


def test_nan_is_a_word_and_never_null(failed: Report) -> None:
    assert document(failed)["findings"][0]["evidence"][0]["value"] == "NaN"


def test_the_bytes_are_the_same_every_time(failed: Report) -> None:
    assert list(json_v1.render(failed)) == list(json_v1.render(failed))


def test_a_name_that_is_no_unicode_still_gives_valid_utf8(hostile: Report) -> None:
    "".join(json_v1.render(hostile)).encode("utf-8")
