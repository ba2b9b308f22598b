"""Discovery names every file of a run: as a source, or as skipped with its reason."""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path

import pytest

from forensics.errors import PlaceError, UsageError
from forensics.io.discover import Discovery, discover
from forensics.io.limits import Limits
from forensics.model import FileStatus

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12345\n"


def paths(found: Discovery) -> list[str]:
    return [source.path for source in found.sources]


def reasons(found: Discovery) -> dict[str, str]:
    return {row.source: row.reason for row in found.skipped}


def write(path: Path, data: bytes = b"x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_sources_come_in_the_order_of_their_paths_with_size_and_time(tmp_path: Path) -> None:
    for name in ("b.log", "a/z.log", "a/b/c.log", "a.log"):
        write(tmp_path / name, b"12345")
    found = discover(tmp_path)
    assert paths(found) == sorted(paths(found)) == ["a.log", "a/b/c.log", "a/z.log", "b.log"]
    assert {s.size_bytes for s in found.sources} == {5}
    assert found.sources[0].mtime_ns == (tmp_path / "a.log").stat().st_mtime_ns


def test_a_file_given_as_the_run_is_its_only_source(tmp_path: Path) -> None:
    write(tmp_path / "other.log")
    found = discover(write(tmp_path / "train.log"))
    assert paths(found) == ["train.log"]


def test_a_linked_file_that_the_user_names_is_read(tmp_path: Path) -> None:
    link = tmp_path / "link.log"
    link.symlink_to(write(tmp_path / "train.log"))
    assert paths(discover(link)) == ["link.log"]


def test_what_does_not_exist_is_a_usage_error_that_names_the_next_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        discover(tmp_path / "nowhere")
    assert "nowhere" in caught.value.message
    assert caught.value.help == f"ls {tmp_path}"


def test_no_link_is_followed_and_each_says_where_it_leads(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside" / "secret.log")
    run = tmp_path / "run"
    write(run / "real" / "a.log")
    (run / "again.log").symlink_to("real/a.log")
    (run / "folder").symlink_to("real")
    (run / "loop").symlink_to(".")
    (run / "out.log").symlink_to(outside)
    (run / "up").symlink_to("..")
    (run / "gone.log").symlink_to("nowhere")
    (run / "self.log").symlink_to("self.log")
    found = discover(run)
    assert paths(found) == ["real/a.log"]
    why = reasons(found)
    assert {why["again.log"], why["folder"], why["loop"]} == {"link"}
    assert {why["out.log"], why["up"]} == {"link out of the run"}
    assert why["gone.log"].startswith("link that leads nowhere")
    assert why["self.log"].startswith("link that leads nowhere")


def test_a_neighbour_whose_name_begins_like_the_run_is_outside(tmp_path: Path) -> None:
    outside = write(tmp_path / "run-2" / "a.log")
    run = tmp_path / "run"
    run.mkdir()
    (run / "a.log").symlink_to(outside)
    assert reasons(discover(run)) == {"a.log": "link out of the run"}


def test_a_second_name_of_the_same_file_is_not_read_twice(tmp_path: Path) -> None:
    (tmp_path / "b.log").hardlink_to(write(tmp_path / "a.log"))
    found = discover(tmp_path)
    assert paths(found) == ["a.log"]
    assert reasons(found) == {"b.log": "link"}


def test_pipes_and_sockets_are_named_and_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    monkeypatch.chdir(tmp_path)  # a socket's path is short by law
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        found = discover(tmp_path)
    assert reasons(found) == {"pipe.log": "fifo", "s": "socket"}
    assert reasons(discover(tmp_path / "pipe.log")) == {"pipe.log": "fifo"}


def test_a_device_given_as_the_run_is_skipped() -> None:
    assert reasons(discover(Path("/dev/null"))) == {"null": "device"}


def test_empty_files_and_pointers_of_git_lfs_are_named_as_such(tmp_path: Path) -> None:
    write(tmp_path / "empty.log", b"")
    write(tmp_path / "model.bin", POINTER)
    write(tmp_path / "talk.log", b"we use version https://git-lfs.github.com/spec/v1 here\n")
    found = discover(tmp_path)
    assert paths(found) == ["talk.log"]
    assert reasons(found) == {"empty.log": "empty", "model.bin": "git-lfs pointer"}
    row = next(row for row in found.skipped if row.source == "model.bin")
    assert (row.read_bytes, row.skipped_bytes, row.status) == (0, len(POINTER), FileStatus.SKIPPED)


def test_what_may_not_be_read_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.log")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert reasons(discover(tmp_path)) == {"a.log": "unreadable: Permission denied"}


def test_a_folder_that_may_not_be_listed_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "shut" / "a.log")
    write(tmp_path / "open" / "b.log")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = discover(tmp_path)
    assert paths(found) == ["open/b.log"]
    assert reasons(found) == {"shut": "unreadable: Permission denied"}


ODD = [b"new\nline.log", b"::error::x", b"<script>.log", b"esc\x1b[2J.log", b"latin\xe9.log", b" .log", b"-rf"]


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_odd_names_survive_unchanged(tmp_path: Path, name: bytes) -> None:
    (tmp_path / os.fsdecode(name)).write_bytes(b"x\n")
    (source,) = discover(tmp_path).sources
    assert os.fsencode(source.disk_path or source.path) == name
    assert source.path.encode()


def test_folders_are_walked_to_the_limit_and_the_rest_is_stated(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(5):
        deep /= "d"
        write(deep / "a.log")
    found = discover(tmp_path, Limits(depth=3))
    assert paths(found) == ["d/a.log", "d/d/a.log", "d/d/d/a.log"]
    assert reasons(found) == {"d/d/d/d": "deeper than 3 folders"}


def test_too_many_files_stop_the_walk_with_an_issue(tmp_path: Path) -> None:
    for n in range(10):
        write(tmp_path / f"{n}.log")
    found = discover(tmp_path, Limits(files=4))
    assert len(found.sources) == 4
    assert [issue.code for issue in found.issues] == ["too-many-files"]


def test_ranks_and_attempts_come_from_the_path(tmp_path: Path) -> None:
    for name in ("attempt_1/3/stdout.log", "rank_5/train.log", "train.log"):
        write(tmp_path / name)
    found = {s.path: (s.rank, s.attempt) for s in discover(tmp_path).sources}
    assert found == {"attempt_1/3/stdout.log": (3, 1), "rank_5/train.log": (5, None), "train.log": (None, None)}


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (("worker-0.log", "worker-1.log"), [0, 1]),
        (("proc0.out", "proc1.out", "train.log"), [0, 1, None]),
        (("process_0/run.txt", "process_1/run.txt"), [0, 1]),
        (("worker-0/proc0.log", "worker-0/proc1.log"), [0, 1]),  # the deepest number counts
        (("device0/log0.log", "device1/log1.log"), [0, 1]),  # the folder holds the number, too
        (("device0/log1.log", "device1/log0.log"), [None, None]),
        (("worker-1.log", "worker-2.log"), [None, None]),  # counted from 1: not the ranks of a job
        (("describe_trainer-1.txt", "trainer-0.log", "trainer-1.log"), [1, 0, 1]),  # speaks of the process
        (("describe_trainer-2.txt", "trainer-0.log", "trainer-1.log"), [None, 0, 1]),
        (("worker-0.log", "worker-1.log", "worker-3.log"), [0, 1, 3]),  # one left no file
        (("worker-0.log", "worker-7.log"), [None, None]),
        (("worker-0.log",), [None]),
        (("proc0.csv", "proc1.csv", "proc2.jsonl"), [0, 1, None]),
        (("worker-0.csv", "worker-1.csv"), [None, None]),  # a table of a worker may be that of a data loader
        (("proc0.pt", "proc1.pt"), [None, None]),
        (("coworker0.log", "coworker1.log"), [None, None]),
    ],
)
def test_logs_of_processes_that_are_numbered_from_0_have_ranks(
    names: tuple[str, ...], ranks: list[int | None], tmp_path: Path
) -> None:
    for name in names:
        write(tmp_path / name)
    assert [source.rank for source in discover(tmp_path).sources] == ranks


@pytest.mark.parametrize(
    ("head", "ranks"),
    [("update,loss,total_ms", [0, 1]), ("batch,lossless,read_ms", [None, None])],
    ids=["a loss", "none"],
)
def test_a_worker_whose_table_names_a_loss_is_a_rank(head: str, ranks: list[int | None], tmp_path: Path) -> None:
    for n in range(2):
        (tmp_path / f"worker{n}.csv").write_text(f"{head}\n1,2.0,3\n")
    assert [source.rank for source in discover(tmp_path).sources] == ranks


@pytest.mark.parametrize(
    ("name", "head", "ranks"),
    [
        ("r{}.csv", "step,loss,fwd_ms,allreduce_ms", [0, 1]),
        ("r{}.csv", "step,loss,fwd_ms,allreduce", [0, 1]),
        ("r{}.csv", "step,loss,fwd_ms", [None, None]),
        ("s{}.csv", "step,loss,allreduce", [None, None]),
    ],
)
def test_a_letter_is_of_a_rank_where_the_table_has_the_time_of_a_collective(
    name: str, head: str, ranks: list[int | None], tmp_path: Path
) -> None:
    for n in range(2):
        (tmp_path / name.format(n)).write_text(f"{head}\n1,2.0,3,4\n")
    assert [source.rank for source in discover(tmp_path).sources] == ranks


def test_twenty_thousand_files_take_two_seconds_at_most(tmp_path: Path) -> None:
    for folder in range(20):
        (tmp_path / str(folder)).mkdir()
        for n in range(1000):
            os.close(os.open(tmp_path / str(folder) / f"{n}.log", os.O_CREAT | os.O_WRONLY))
    begin = time.process_time()
    found = discover(tmp_path)
    assert time.process_time() - begin < 2
    assert len(found.skipped) == 20_000


def test_a_folder_that_is_not_ours_to_read_is_said_with_who_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shut(path: str) -> None:
        raise PermissionError(errno.EACCES, "no", path)

    monkeypatch.setattr(os, "scandir", shut)
    with pytest.raises(PlaceError) as refused:
        discover(tmp_path, Limits())
    assert refused.value.help == f"ls -ld {tmp_path} shows who may read it"


def test_a_folder_that_the_machine_cannot_open_is_said_with_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: str) -> None:
        raise OSError(errno.EMFILE, "no", path)

    monkeypatch.setattr(os, "scandir", full)
    with pytest.raises(PlaceError) as refused:
        discover(tmp_path, Limits())
    assert refused.value.help == "ulimit -n 1024, then the same command"
