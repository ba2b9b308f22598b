"""Results and histories in a bucket: written whole, once, by one of several, however the service answers."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from forensics.cli.main import run
from forensics.errors import PlaceError, UsageError
from forensics.history.past import Past
from forensics.history.shelf import history, kept
from forensics.io.places.bucket import Bucket as BucketPlace
from forensics.io.places.named import place_of
from forensics.io.places.written import is_taken, write, written_once
from forensics.values import replace
from tests.fake_bucket import KEY_ID, SECRET, Bucket, served

pytest.importorskip("obstore")

RUN = Path(__file__).parents[4] / "fixtures" / "runs" / "nan-bad-sample-torchtitan"
PAST = Past("a", "k1", "1", 5, 10**18, "failed", "nan", "blowup", "The loss is NaN", root="r1", step=7)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Generator[Bucket]:
    with served() as made:
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        yield made


def test_a_result_is_one_object_and_replaces_another_one_only_by_force(bucket: Bucket) -> None:
    write("s3://bucket/out/a.json", b"first", force=False)
    assert bucket.objects == {"out/a.json": b"first"}
    assert is_taken("s3://bucket/out/a.json")
    assert not is_taken("s3://bucket/out")
    with pytest.raises(UsageError, match=r"s3://bucket/out/a\.json exists"):
        write("s3://bucket/out/a.json", b"second", force=False)
    write("s3://bucket/out/a.json", b"third", force=True)
    assert bucket.objects == {"out/a.json": b"third"}


def test_a_bucket_alone_is_no_place_for_a_result(bucket: Bucket) -> None:
    with pytest.raises(UsageError, match="names a bucket, and no object of it"):
        write("s3://bucket", b"x", force=True)
    assert bucket.requests == []


def test_of_several_that_write_one_name_one_wins_and_the_same_bytes_are_ours(bucket: Bucket) -> None:
    one, other = place_of("s3://bucket/a"), place_of("s3://bucket/a")
    assert isinstance(one, BucketPlace)
    assert isinstance(other, BucketPlace)
    assert written_once(one, b"same")
    assert written_once(other, b"same")
    assert not written_once(other, b"else")
    assert bucket.objects == {"a": b"same"}


def test_a_history_in_a_bucket_gives_back_what_each_call_added(bucket: Bucket) -> None:
    where = "s3://bucket/past"
    assert history(where).past == ()
    kept(where, [PAST])
    kept(where, [PAST])
    kept(where, [replace(PAST, run="b", key="k2")])
    assert [one.run for one in history(where).past] == ["a", "b"]
    assert len(bucket.objects) == 2


def test_a_damaged_object_of_a_history_is_left_out_and_counted(bucket: Bucket) -> None:
    kept("s3://bucket/past", [PAST])
    [key] = bucket.objects
    bucket.objects[key] = bucket.objects[key][:-5]
    found = history("s3://bucket/past")
    assert (found.past, found.unusable) == ((), 1)


def test_each_third_request_may_fail_and_nothing_is_lost_or_there_twice(bucket: Bucket) -> None:
    bucket.fail_each = 3
    added = [replace(PAST, run=f"run-{n:02}", key=f"k{n}") for n in range(30)]
    for one in added:
        kept("s3://bucket/past", [one])
    write("s3://bucket/report.html", b"page", force=False)
    assert [one.run for one in history("s3://bucket/past").past] == [one.run for one in added]
    assert len(bucket.objects) == 31


def test_a_refused_write_says_why_and_holds_no_credentials(bucket: Bucket) -> None:
    bucket.fail_each, bucket.fail_with = 1, 403
    with pytest.raises(PlaceError) as refused:
        write("s3://bucket/a", b"x", force=True)
    assert refused.value.message == "s3://bucket/a: permission denied"
    assert not any(secret in f"{refused.value.message} {refused.value.help}" for secret in (KEY_ID, SECRET))


def test_triage_writes_its_answer_and_its_history_into_a_bucket(
    bucket: Bucket, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["triage", str(RUN), "--history", "s3://bucket/past", "-f", "json", "-o", "s3://bucket/out.json"]
    assert run(command) == 1
    assert "Wrote s3://bucket/out.json" in capsys.readouterr().err
    assert b"forensics.report/1" in bucket.objects["out.json"]
    assert run(command) == 2
    assert "s3://bucket/out.json exists" in capsys.readouterr().err
    assert run(["history", "s3://bucket/past"]) == 0
    assert capsys.readouterr().out.startswith("1 run in s3://bucket/past: 1 failed")
    assert run(["history", "s3://bucket/none"]) == 2
    assert list(tmp_path.iterdir()) == []
