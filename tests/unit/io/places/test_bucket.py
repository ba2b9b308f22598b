"""A run in a bucket is read as the same run in a folder is, whatever its keys are and however the service answers."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from forensics import api
from forensics.errors import InputError, PlaceError, UsageError
from forensics.formats.rows.out import Out
from forensics.formats.text import slices
from forensics.io.discover import Discovery, discover
from forensics.io.limits import DEFAULT, Limits
from forensics.io.places import client
from forensics.io.places.named import place_of
from forensics.io.reading import Opened, open_source
from forensics.io.slices import Cutting, Slice
from forensics.model import Source
from forensics.pipeline import ingest_run, ingest_shard, triage
from forensics.report import json_v1
from forensics.scale.shard import Shard
from forensics.store.gather import issues_of, stored_coverage
from forensics.store.slices import cutting
from forensics.values import replace
from tests.fake_bucket import KEY_ID, Bucket, served

pytest.importorskip("obstore")

FIXTURES = Path(__file__).parents[4] / "fixtures" / "runs"
RUN = "s3://bucket/run"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Generator[Bucket]:
    with served() as made:
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    size_bytes = 1000
    for module in ("client", "stored"):
        monkeypatch.setattr(f"forensics.io.places.{module}.BLOCK_BYTES", size_bytes)
    return size_bytes


def paths(found: Discovery) -> list[str]:
    return [source.path for source in found.sources]


@pytest.mark.parametrize("name", ["nan-in-many-stores", "oom-then-hang-torchrun", "bad-eval-mix"])
def test_the_diagnosis_in_a_bucket_is_that_in_a_folder(bucket: Bucket, tmp_path: Path, name: str) -> None:
    folder = FIXTURES / name
    bucket.put_folder(folder, "run")
    here, there = ("".join(json_v1.render(triage(place))) for place in (folder, RUN))
    assert there == here.replace(str(folder), RUN)
    assert len(bucket.requests) <= len(bucket.objects) + 2
    kept = "".join(json_v1.render(triage(RUN, store=tmp_path / "store")))
    assert kept == there


def test_an_unchanged_object_is_not_read_again_from_a_bucket(bucket: Bucket, tmp_path: Path) -> None:
    bucket.objects |= {"run/a.log": b"step 1 loss 2.0\n" * 9, "run/b.log": b"step 2 loss 1.0\n" * 9}
    ingest_run(RUN, store=tmp_path)
    bucket.requests.clear()
    ingest_run(RUN, store=tmp_path)
    assert len(bucket.requests) == 1 + 2, "the list tells that nothing has changed; their first lines are looked at"
    bucket.objects["run/b.log"] += b"step 3 loss 0.5\n"
    run = ingest_run(RUN, store=tmp_path)
    assert not issues_of(run)
    assert [file.size_bytes for file in stored_coverage(run).files] == [144, 160]


def test_each_tenth_request_may_fail_and_nothing_is_lost(bucket: Bucket, small_blocks: int) -> None:
    folder = FIXTURES / "nan-in-many-stores"
    bucket.put_folder(folder, "run")
    bucket.fail_each = 10
    here, there = ("".join(json_v1.render(triage(place))) for place in (folder, RUN))
    assert there == here.replace(str(folder), RUN)
    assert len(bucket.requests) > max(len(data) for data in bucket.objects.values()) // small_blocks


def test_a_body_that_ends_early_is_asked_for_again(bucket: Bucket) -> None:
    bucket.objects["run/a.log"] = b"x" * 5000
    bucket.cut_each = 2
    bucket.requests.append("first")
    with open_source(RUN, Source("a.log", 5000)) as opened:
        assert opened.span(0, 5000) == b"x" * 5000


def test_an_object_is_one_file_called_by_its_name(bucket: Bucket) -> None:
    bucket.objects |= {"run/train.log": b"step 1\n", "run/train.log.other": b"2"}
    found = discover(f"{RUN}/train.log")
    assert paths(found) == ["train.log"]
    with open_source(found.place, found.sources[0]) as opened:
        assert opened.head(99) == b"step 1\n"
        beside = opened.beside(".log", ".log.other")
        assert beside is not None
        assert beside.head(9) == b"2"
        assert opened.beside(".log", ".nothing") is None


def test_odd_keys_are_files_and_marks_of_folders_are_none(bucket: Bucket) -> None:
    names = ["a b.log", "a%20b.log", "a#b.log", "ä.log", "[1]*~.log", "back\\slash", "..x/y", '"q"|<x>', "sub/x.txt"]
    bucket.objects |= {f"run/{name}": name.encode() for name in names}
    bucket.objects |= {"run/": b"", "run/sub/": b"", "run/empty": b"", "runs/other": b"x", "/run/x": b"x"}
    found = discover(RUN)
    assert paths(found) == sorted(names)
    assert [(row.source, row.reason) for row in found.skipped] == [("empty", "empty")]
    for source in found.sources:
        with open_source(found.place, source) as opened:
            assert opened.head(99) == source.path.encode()


@pytest.mark.parametrize("bad", ["up/../../secret", "up/./x", "up/a\x1b[2J", "up//x"])
def test_a_key_that_no_path_can_be_costs_its_folder_and_is_told(bucket: Bucket, bad: str) -> None:
    bucket.objects |= {f"run/{bad}": b"x", "run/a.log": b"x", "run/up/good.log": b"x", "run/z/z.log": b"x"}
    found = discover(RUN)
    assert {"a.log", "z/z.log"} <= set(paths(found))
    (skipped,) = found.skipped
    assert skipped.source.startswith("up")
    assert "no path is named so" in skipped.reason


def test_a_listing_is_bounded_as_a_folder_is(bucket: Bucket) -> None:
    bucket.objects |= {f"run/{number:04}.log": b"x" for number in range(2500)}
    bucket.objects["run/a/b/c/deep.log"] = b"x"
    assert len(discover(RUN).sources) == 2501
    bucket.requests.clear()
    found = discover(RUN, replace(DEFAULT, files=1200))
    assert (len(found.sources), [issue.code for issue in found.issues]) == (1200, ["too-many-files"])
    assert len(bucket.asked("GET", "list-type")) == 2
    found = discover(f"{RUN}/a", replace(DEFAULT, depth=1))
    assert [row.reason for row in found.skipped] == ["deeper than 1 folders"]


def test_ranges_are_read_and_each_block_once(bucket: Bucket, small_blocks: int) -> None:
    data = bytes(range(250)) * 20
    bucket.objects["run/a.bin"] = data
    with open_source(RUN, Source("a.bin", len(data))) as opened:
        assert opened.tail(10) == data[-10:]
        assert opened.span(950, 100) == data[950:1050]
        assert len(bucket.asked("GET")) == 3  # the first block, the last and the second
        assert bytes(opened.raw()) == data
        assert len(bucket.asked("GET")) == len(data) // small_blocks


def test_blocks_are_forgotten_when_their_room_is_used_up(
    bucket: Bucket, small_blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_CACHE_BYTES", 2 * small_blocks)
    bucket.objects["run/a.bin"] = data = bytes(5 * small_blocks)
    with open_source(RUN, Source("a.bin", len(data))) as opened:
        assert b"".join(opened.span(at, 1000) for at in range(0, 5000, 1000)) == data
        opened.span(0, 10)
    assert len(bucket.asked("GET")) == 6


def test_an_object_that_is_replaced_while_it_is_read_is_a_loss_and_no_mixture(
    bucket: Bucket, small_blocks: int
) -> None:
    bucket.objects["run/a.bin"] = b"old " * 1000
    with open_source(RUN, Source("a.bin", 4000)) as opened:
        bucket.objects["run/a.bin"] = b"new " * 1000
        with pytest.raises(InputError, match="replaced while it was read"):
            opened.span(0, 4000)
        assert opened.lost is not None
        assert opened.lost.byte == small_blocks
        assert bytes(opened.raw()) == b"old " * 250


def test_one_object_that_may_not_be_read_costs_itself(bucket: Bucket) -> None:
    bucket.objects |= {"run/a.log": b"step 1 loss 2.0\n", "run/secret.log": b"step 1 loss 2.0\n"}
    bucket.forbidden = "secret"
    run = ingest_run(RUN)
    assert [file.status.value for file in stored_coverage(run).files] == ["read", "skipped"]
    (issue,) = issues_of(run)
    assert (issue.source, issue.message) == ("secret.log", "permission denied")


@pytest.mark.parametrize(
    ("code", "words"),
    [(403, "permission denied"), (401, "the credentials are refused"), (400, "the request is refused")],
)
def test_a_refused_listing_is_told_in_our_own_words(bucket: Bucket, code: int, words: str) -> None:
    bucket.fail_each, bucket.fail_with = 1, code
    with pytest.raises(PlaceError) as caught:
        discover(RUN)
    said = caught.value.message + caught.value.help
    assert said.startswith(f"{RUN}: {words}")
    assert "AWS_ACCESS_KEY_ID" in said
    assert KEY_ID not in said


def test_a_place_that_does_not_answer_is_tried_a_bounded_number_of_times(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_TRIES", 2)
    bucket.fail_each = 1
    with pytest.raises(PlaceError) as caught:
        discover(RUN)
    assert len(bucket.requests) == 2
    assert "answers with an error of its own, again and again" in caught.value.message
    assert caught.value.help == "wait, then the same command"


def test_a_place_that_stops_to_answer_ends_the_reading(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_TRIES", 1)
    monkeypatch.setattr(client, "_BODY_TRIES", 1)
    bucket.objects |= {f"run/{number}.log": b"step 1 loss 2.0\n" for number in range(9)}
    place = place_of(RUN)
    found = discover(place)
    bucket.fail_each = 1
    for source in found.sources[:2]:
        with pytest.raises(InputError), open_source(place, source):
            pass
    with pytest.raises(PlaceError, match="s3://bucket"), open_source(place, found.sources[2]):
        pass


def test_a_name_under_which_nothing_is_has_an_answer_of_its_own(bucket: Bucket) -> None:
    bucket.objects["run/a.log"] = b"x"
    for name in ("s3://bucket/nothing", "s3://bucket/ru"):
        with pytest.raises(UsageError, match="none is below it"):
            discover(name)
    with pytest.raises(PlaceError, match="no such bucket"):
        discover("s3://other/run")


def test_a_notebook_reads_an_address_too(bucket: Bucket) -> None:
    bucket.put_folder(FIXTURES / "bad-eval-mix", "run")
    assert api.open_run(RUN).name == RUN


def test_a_path_inside_a_run_is_no_place_to_ask(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("loading checkpoint from s3://bucket/run/step-100\nstep 1 loss 2.0\n")
    triage(tmp_path)
    assert bucket.requests == []


def test_shares_of_a_large_log_in_a_bucket_read_each_slice_once(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f"step: {step} | loss: {2 + step % 7 / 10}\n" for step in range(2_000)).encode()
    monkeypatch.setattr(cutting, "CUT_FROM_BYTES", 20_000)
    monkeypatch.setattr(slices, "CUTTING", Cutting(step_bytes=10_000, line_bytes=4_000))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "train.log").write_bytes(lines)
    bucket.objects["run/train.log"] = lines
    read: list[int] = []
    once = slices.read

    def counting(opened: Opened, out: Out, limits: Limits, part: Slice) -> str:
        read.append(part.number)
        return once(opened, out, limits, part)

    monkeypatch.setattr(slices, "read", counting)
    for index in (1, 0):
        ingest_shard(RUN, Shard(index, 2), store=tmp_path / "store")
    found = ingest_run(RUN, store=tmp_path / "store")
    assert sorted(read) == list(range(len(read)))
    assert len(read) > 3
    wanted = ingest_run(tmp_path / "run", store=tmp_path / "other").collect("metrics")
    assert found.collect("metrics").equals(wanted, null_equal=True)
