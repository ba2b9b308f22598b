"""Ray: without it one line says what to install; with it two machines, one of which dies, give the run."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from forensics.errors import MissingPackage, PlaceError
from forensics.pipeline import ingest_run
from forensics.scale import cluster
from forensics.scale.choice import Spread
from forensics.store.schema import TABLES

HERE = Path(__file__).parent
NEEDS_RAY = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="pip install ray")
#: A cluster of two machines of one core each; the second one ends when the first items are done.
CLUSTER = """
import json, os, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[3])
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "PYTHONPATH": os.pathsep.join(sys.path)}
import reads_with_faults
from ray.cluster_utils import Cluster
from forensics import registry
from forensics.io.discover import discover
from forensics.io.limits import DEFAULT
from forensics.scale.cluster import Cluster as Engine
from forensics.store import disk, unit
if __name__ == "__main__":
    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = machines.add_node(num_cpus=1)
    os.environ["RAY_ADDRESS"] = machines.address
    unit._GROUP_FILES = 1
    run = Path(sys.argv[1])
    found = discover(run)

    def engine(_, items):
        for at, outcome in enumerate(Engine().map_unordered(reads_with_faults.read, items)):
            if at == 2:
                machines.remove_node(second, allow_graceful=False)
            yield outcome

    job = disk.Job(found.place, found.sources, registry.load("ingesters").ingesters, DEFAULT, engine=engine)
    stored = disk.ingest_to_disk(job, Path(sys.argv[2]))
    print(json.dumps([[issue.source, issue.code, issue.message] for issue in stored.issues]))
    machines.shutdown()
"""

#: Two machines that stay until their input ends.
MACHINES = """
import os, sys
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "PYTHONPATH": os.pathsep.join(sys.path)}
from ray.cluster_utils import Cluster
machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
machines.add_node(num_cpus=1)
print(machines.address, flush=True)
sys.stdin.read()
machines.shutdown()
"""
#: A command that reads a run on the cluster of `RAY_ADDRESS`, an item a file.
DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import reads_with_faults
from forensics import registry
from forensics.io.discover import discover
from forensics.io.limits import DEFAULT
from forensics.scale.cluster import Cluster as Engine
from forensics.store import disk, unit
unit._GROUP_FILES = 1
found = discover(Path(sys.argv[1]))
engine = lambda _, items: Engine().map_unordered(reads_with_faults.read, items)
job = disk.Job(found.place, found.sources, registry.load("ingesters").ingesters, DEFAULT, engine=engine)
disk.ingest_to_disk(job, Path(sys.argv[2]))
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    for index in range(10):
        rows = ({"step": step, "loss": index + 1 / step} for step in range(1, 30))
        (run / f"metrics-{index}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


def test_what_is_missing_is_said_before_anything_is_read(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingPackage, match="needs ray") as missing:
        ingest_run(run, spread=Spread(engine="ray"))
    assert missing.value.help == "pip install 'ml-run-forensics[ray]'"


def test_a_cluster_that_cannot_be_joined_is_told_as_the_machine_s_refusal(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ray:
        def is_initialized(self) -> bool:
            return False

        def init(self, **_: object) -> None:
            raise Exception("The current node timed out during startup.")  # noqa: TRY002 - as ray does

    monkeypatch.setattr(cluster, "check", lambda: None)
    monkeypatch.setattr(cluster, "optional", lambda *_: Ray())
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    with pytest.raises(PlaceError, match=r"ray, the cluster at head:6379: The current node timed out") as refused:
        ingest_run(run, store=tmp_path / "place", spread=Spread(engine="ray"))
    assert refused.value.help == "look at the cluster, or leave --engine out"


class RayInOneProcess:
    """Does a task when it is waited for, and prints what happened to a worker, as ray does."""

    exceptions = SimpleNamespace(RayError=KeyError)

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: object) -> None: ...

    def shutdown(self) -> None: ...

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}

    def remote(self, work: Callable[[str, bytes], bytes]) -> object:
        asked = SimpleNamespace(remote=lambda *given: given)
        self.work = work
        return SimpleNamespace(options=lambda **_: asked)

    def wait(self, pending: list[object], **_: object) -> tuple[list[object], list[object]]:
        print("(raylet) A worker died or was killed while executing a task")  # noqa: T201 - as ray does
        return pending[:1], pending[1:]

    def get(self, given: tuple[str, bytes]) -> bytes:
        return self.work(*given)


def test_what_ray_prints_of_a_worker_that_died_is_no_part_of_the_answer(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "check", lambda: None)
    monkeypatch.setattr(cluster, "optional", lambda *_: RayInOneProcess())
    found = ingest_run(run, store=tmp_path / "place", spread=Spread(engine="ray"))
    print("the answer")  # noqa: T201 - the next one to print
    assert found.collect("metrics").equals(ingest_run(run).collect("metrics"), null_equal=True)
    printed = capsys.readouterr()
    assert (printed.out, "A worker died" in printed.err) == ("the answer\n", True)


@NEEDS_RAY
def test_a_machine_that_dies_loses_nothing_and_poison_is_named(run: Path, tmp_path: Path) -> None:
    (run / "poison.jsonl").write_text('{"step": 1, "loss": 2}\n')
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CLUSTER, run, tmp_path / "place", HERE],
        env=os.environ | {"HOME": str(home)}, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    [[source, code, message]] = json.loads(done.stdout.splitlines()[-1])
    assert (source, code) == ("poison.jsonl", "reader-died")
    assert message.startswith("the task that reads it ends in ")
    assert list(home.iterdir()) == []
    (run / "poison.jsonl").unlink()
    found, wanted = ingest_run(run, store=tmp_path / "place"), ingest_run(run)
    for table in TABLES:
        assert found.collect(table).equals(wanted.collect(table), null_equal=True), table


@NEEDS_RAY
def test_a_killed_command_goes_on_where_it_ended(run: Path, tmp_path: Path) -> None:
    place, log = tmp_path / "place", tmp_path / "read"
    log.touch()
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE), *sys.path)), "RAY_AUTH_MODE": "disabled"}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", MACHINES], env=env, stdin=pipe, stdout=pipe, text=True) as machines:
        assert machines.stdin is not None
        assert machines.stdout is not None
        env["RAY_ADDRESS"] = machines.stdout.readline().strip()
        command = [sys.executable, "-c", DRIVER, run, place, HERE]
        killed = subprocess.Popen(command, env=env)
        while len(log.read_text().splitlines()) < 4:
            assert killed.poll() is None
            time.sleep(0.01)
        killed.kill()
        killed.wait()
        subprocess.run(command, env=env, check=True)
        machines.stdin.close()
    read = Counter(log.read_text().splitlines())
    assert read.keys() == {path.name for path in run.iterdir()}
    assert read.total() <= 10 + 2, "one item for each machine"
    found, wanted = ingest_run(run, store=place), ingest_run(run)
    for table in TABLES:
        assert found.collect(table).equals(wanted.collect(table), null_equal=True), table


@NEEDS_RAY
def test_a_cluster_of_its_own_gives_the_tables_and_writes_nothing_into_home(run: Path, tmp_path: Path) -> None:
    home, place = tmp_path / "home", tmp_path / "place"
    home.mkdir()
    command = [sys.executable, "-m", "forensics", "ingest", run, "--store", place, "--engine", "ray", "--jobs", "1"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    subprocess.run(command, env=env | {"HOME": str(home)}, stdout=subprocess.DEVNULL, check=True)
    assert list(home.iterdir()) == []
    found, wanted = ingest_run(run, store=place), ingest_run(run)
    for table in TABLES:
        assert found.collect(table).equals(wanted.collect(table), null_equal=True), table
