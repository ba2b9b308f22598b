"""The golden runs, read by each engine and from each place: rows and diagnosis are those of one process, byte for byte.

    python tests/golden/anywhere.py                                all ways, all runs
    python tests/golden/anywhere.py --ways ray bucket --of 300     some ways, and 300 runs drawn with --seed
    python tests/golden/anywhere.py --ways shards --judged 300     rows of all runs, the diagnosis of 300

`processes` divides the files of a run among two processes of the local engine, `fleet` the runs; `shards` reads each
run as 1, 3 and 16 shares in random order, some of them twice, and then as a whole; `ray` asks a cluster of two nodes
for files and for runs (pip install ray), `bucket` moto's S3 server (pip install obstore 'moto[server]').
"""

from __future__ import annotations

import argparse
import difflib
import gc
import logging
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
import runs  # noqa: E402 - the folder is no package

from forensics.case.runs import split  # noqa: E402 - the path of the checkout comes first
from forensics.config import Config  # noqa: E402 - same
from forensics.fleet.judging import How, answers  # noqa: E402 - same
from forensics.fleet.members import Member  # noqa: E402 - same
from forensics.io.places.named import place_of  # noqa: E402 - same
from forensics.model import Report  # noqa: E402 - same
from forensics.pipeline import ingest_run, ingest_shard, report_of  # noqa: E402 - same
from forensics.report import json_v1  # noqa: E402 - same
from forensics.scale import local, wire  # noqa: E402 - same
from forensics.scale.choice import Spread  # noqa: E402 - same
from forensics.scale.shard import Shard  # noqa: E402 - same
from forensics.scale.worker import Reply  # noqa: E402 - same
from forensics.store import disk, unit  # noqa: E402 - same
from forensics.store.run import Run  # noqa: E402 - same
from forensics.store.schema import TABLES  # noqa: E402 - same
from forensics.values import replace  # noqa: E402 - same

#: What a way reads, or says where other processes judge: of each run once, or several times, in their order.
Way = Callable[[Sequence[Path]], Iterator[tuple[Path, Run | str]]]
COUNTS = (1, 3, 16)
_TWO = 2
_SHOWN_LINES = 12
#: Ray waits 30 s for a node of its own and for its agents, which on a busy machine start in more.
_PATIENCE = {"RAY_raylet_start_wait_time_s": "300", "RAY_agent_register_timeout_ms": "300000"}
_GC_THRESHOLD = 200_000


def page(reports: Sequence[Report]) -> str:
    """What commands print as JSON of the runs of a place."""
    return "\n".join(json_v1.render_many(reports))


def said(run: Run) -> str:
    """Judge what was read."""
    return page([report_of(one) for one in split(run)])


class _Standing(Spread, frozen=True):
    """Processes of the local engine that outlive a run; starting two for each of 1,924 runs takes an hour."""

    crew: tuple[local._Process[unit.Item], ...] = ()

    def map(self) -> disk.Map:
        return self._answers

    def _answers(self, _: Any, items: Sequence[unit.Item]) -> Iterator[disk.Outcome]:
        for first in range(0, len(items), len(self.crew)):
            asked = list(zip(self.crew, items[first:], strict=False))
            for process, item in asked:
                process.ask(item)
            for process, item in asked:
                assert wire.received(process.answers) == b""  # it begins
                data = wire.received(process.answers)
                assert data is not None
                yield item, wire.unpacked(data, Reply).record_as(unit.Record)


def processes(places: Sequence[Path]) -> Iterator[tuple[Path, Run]]:
    """Each file is an item of its own, and two processes do them."""
    crew = tuple(local._started(unit.read) for _ in range(_TWO))
    try:
        for process in crew:
            wire.received(process.answers)  # its greeting
        with mock.patch.object(unit, "_GROUP_FILES", 1):
            for place in places:
                yield place, ingest_run(place, spread=_Standing(jobs=_TWO, crew=crew))
    finally:
        for process in crew:
            process.close()


def fleet(
    places: Sequence[Path],
    spread: Spread = Spread(jobs=_TWO),  # noqa: B008 - it is frozen
) -> Iterator[tuple[Path, str]]:
    """The runs of a fleet, judged by two processes."""
    members = [Member(place_of(place), 1_000) for place in places]
    for place, (_, judged) in zip(places, answers(members, How(Config()), spread, (), lambda _: None), strict=True):
        yield place, page([answer.whole for answer in judged.answers])


def shards(places: Sequence[Path]) -> Iterator[tuple[Path, Run]]:
    """Shares in random order, a quarter of them twice, and then the run."""
    for place, count in product(places, COUNTS):
        shares = [Shard(index, count) for index in range(count)]
        drawn = random.Random(f"{place.name} {count}")
        order = [*shares, *drawn.sample(shares, -(-count // 4))]
        drawn.shuffle(order)
        with tempfile.TemporaryDirectory() as store:
            for shard in order:
                ingest_shard(place, shard, store=Path(store))
            yield place, ingest_run(place, store=Path(store))


@contextmanager
def two_nodes() -> Generator[None]:
    """A Ray cluster of two nodes of one core each, which this process has joined."""
    import ray  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - same
    from ray.cluster_utils import Cluster  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - an extra

    from forensics.scale import cluster  # noqa: PLC0415 - only here

    paths = os.pathsep.join(sys.path)
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "PYTHONPATH": paths} | _PATIENCE
    with mock.patch.dict(os.environ, quiet):
        machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        machines.add_node(num_cpus=1)
        os.environ["RAY_ADDRESS"] = machines.address
        try:
            with cluster._connected(ray, None):
                yield
        finally:
            machines.shutdown()


def ray_files(places: Sequence[Path]) -> Iterator[tuple[Path, Run]]:
    """The files of a run are read by two nodes, into a store that both see."""
    with two_nodes(), mock.patch.object(unit, "_GROUP_FILES", 1):
        for place in places:
            with tempfile.TemporaryDirectory() as store:
                yield place, ingest_run(place, store=Path(store), spread=Spread(engine="ray"))


def ray_runs(places: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The runs of a fleet are judged by two nodes."""
    with two_nodes():
        yield from fleet(places, Spread(engine="ray"))


@contextmanager
def moto_bucket() -> Generator[Any]:
    """An empty bucket of moto's S3 server, which the environment names."""
    import boto3  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - what moto brings
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - a test's own

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    url = "http://{}:{}".format(*running.get_host_and_port())
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
    with mock.patch.dict(os.environ, keys | {"AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true"}):
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
        client.create_bucket(Bucket="bucket")
        try:
            yield client
        finally:
            running.stop()


def bucket(places: Sequence[Path]) -> Iterator[tuple[Path, Run]]:
    """Each run from a bucket, beside the same files in a folder: the time of a file is that of its upload in both."""
    with moto_bucket() as client:
        for place in places:
            for path in (one for one in place.rglob("*") if one.is_file()):
                key = f"{place.name}/{path.relative_to(place).as_posix()}"
                client.put_object(Bucket="bucket", Key=key, Body=path.read_bytes())
                at_s = client.head_object(Bucket="bucket", Key=key)["LastModified"].timestamp()
                os.utime(path, (at_s, at_s))
            yield place, replace(ingest_run(f"s3://bucket/{place.name}"), name=str(place))


WAYS: dict[str, tuple[Way, ...]] = {
    "processes": (processes,),
    "fleet": (fleet,),
    "shards": (shards,),
    "ray": (ray_files, ray_runs),
    "bucket": (bucket,),
}


def differing(way: Way, places: Sequence[Path], judged: Collection[str]) -> Iterator[tuple[Path, str]]:
    """Ask a way; gives for each answer the first differences, nothing where it is that of one process."""
    last: tuple[Path, Run] | None = None
    pages: dict[Path, str] = {}
    for place, found in way(places):
        if last is None or last[0] != place:
            last = place, ingest_run(place)
            if way is bucket:
                pages.clear()  # files have the time of their upload now
        alone = last[1]
        if isinstance(found, Run):
            tables = [table for table in TABLES if not _are_same(alone.collect(table), found.collect(table))]
            if tables:
                yield place, f"other rows: {', '.join(tables)}"
                continue
        if isinstance(found, Run) and place.name not in judged:
            yield place, ""
            continue
        if place not in pages:
            pages = {place: said(alone)}
        after = said(found) if isinstance(found, Run) else found
        lines = difflib.unified_diff(_lines(pages[place]), _lines(after), "alone", way.__name__, n=0, lineterm="")
        yield place, "" if after == pages[place] else "\n".join(list(lines)[:_SHOWN_LINES])


def _are_same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.schema == other.schema and one.equals(other, null_equal=True)


def _lines(document: str) -> list[str]:
    """A document as lines that show where two differ."""
    return document.replace(",", ",\n").splitlines()


def compared(names: Sequence[str], places: Sequence[Path], judged: Collection[str]) -> int:
    """Ask some ways of some runs, and show where one differs; gives how often."""
    gc.set_threshold(_GC_THRESHOLD)
    differ = 0
    for way in (way for name in names for way in WAYS[name]):
        began_s, cpu_s = time.monotonic(), time.process_time()
        told = list(differing(way, places, judged))
        wrong = [f"{place.name}: {how}" for place, how in told if how]
        took = f"{time.monotonic() - began_s:.0f} s, {time.process_time() - cpu_s:.0f} s of them on this process"
        asked = f"{len(places)} runs, {len({place for place, _ in told if place.name in judged})} of them judged"
        total = f"{way.__name__}: {len(wrong)} of {len(told)} answers differ; {asked}; {took}"
        print("\n".join([*wrong, total]), flush=True)  # noqa: T201 - that is what it is for
        differ += len(wrong)
    return differ


def main() -> int:
    """Ask every way of every run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--of", type=int, help="so many runs, drawn at random")
    parser.add_argument("--judged", type=int, help="so many of them are judged, and the rows of all compared")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with a share of the runs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        places = runs.unpacked(Path(folder))
        drawn = random.Random(given.seed).sample(places, min(given.of or len(places), len(places)))
        judged = {place.name for place in drawn[: given.judged]}
        parts = [drawn[at :: given.jobs] for at in range(given.jobs)]
        with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
            return int(any(pool.map(compared, [given.ways] * given.jobs, parts, [judged] * given.jobs)))


if __name__ == "__main__":
    raise SystemExit(main())
