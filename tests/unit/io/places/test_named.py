"""What a user types is a path of this machine, or an address of object storage that carries no credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.cli._options import on_this_machine, written_to
from forensics.errors import UsageError
from forensics.io.places.local import Local
from forensics.io.places.named import place_of


@pytest.mark.parametrize("text", ["runs/run-7", "s3:/bucket/x", "./s3:x", "C:run"])
def test_what_is_no_address_is_a_path(text: str) -> None:
    assert place_of(text) == Local(Path(text))


def test_a_path_is_never_an_address() -> None:
    assert place_of(Path("s3://bucket/run")) == Local(Path("s3:/bucket/run"))


@pytest.mark.parametrize("text", ["file:///data/run%207", "FILE://localhost/data/run 7"])
def test_a_file_address_is_a_path(text: str) -> None:
    assert place_of(text).folder == Path("/data/run 7")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("S3://bucket/runs/run 7/", "s3://bucket/runs/run 7"),
        ("gs://b.example/a%20b", "gs://b.example/a%20b"),
        ("az://container/runs", "az://container/runs"),
    ],
)
def test_an_address_is_a_bucket_and_a_prefix_as_they_are_written(text: str, name: str) -> None:
    place = place_of(text)
    assert (place.name, place.folder) == (name, None)
    assert place.identity == name.encode()


@pytest.mark.parametrize(
    "text", ["s3://", "s3:///runs", "s3://bucket/a//b", "s3://bucket/../b", "s3://-b/x", "gs://b/./x", "file://host/x"]
)
def test_an_address_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        place_of(text)


def test_another_kind_of_address_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError) as caught:
        place_of("https://user:secret@host/run?token=secret")
    assert caught.value.message == "https:// is no place that can be read"
    assert "s3://bucket/runs/run-7" in caught.value.help


@pytest.mark.parametrize("text", ["s3://key:hunter2@bucket/run", "az://container/run?sig=hunter2"])
def test_credentials_in_an_address_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        place_of(text)
    assert "hunter2" not in caught.value.message + caught.value.help
    assert "credentials come from the environment" in caught.value.message


def test_tables_are_written_to_this_machine_only() -> None:
    assert on_this_machine("out/tables") == Path("out/tables")
    assert on_this_machine("file:///tmp/a") == Path("/tmp/a")
    with pytest.raises(UsageError, match="not to a bucket"):
        on_this_machine("s3://bucket/tables")


def test_results_are_written_to_a_path_or_an_address_that_can_be_one() -> None:
    assert [written_to(text) for text in ("out.html", "s3://b/out.html")] == ["out.html", "s3://b/out.html"]
    with pytest.raises(UsageError, match="credentials come from the environment"):
        written_to("s3://key:hunter2@b/out.html")
