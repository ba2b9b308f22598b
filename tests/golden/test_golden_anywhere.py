"""Some golden runs, read by each engine and from each place, give the rows and the diagnosis of one process.

`make anywhere` asks all runs, and the two ways whose packages are extras.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import anywhere  # noqa: E402 - the folder is no package
import runs  # noqa: E402 - same

from forensics.pipeline import ingest_run  # noqa: E402 - same
from forensics.store.run import Run  # noqa: E402 - same

RUNS = 6


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return random.Random(7).sample(runs.unpacked(tmp_path_factory.mktemp("golden")), RUNS)


def wrong(way: anywhere.Way, places: list[Path]) -> list[tuple[Path, str]]:
    found = list(anywhere.differing(way, places, {place.name for place in places}))
    assert {place for place, _ in found} == set(places)
    return [(place, how) for place, how in found if how]


@pytest.mark.parametrize("name", ["processes", "fleet", "shards"])
def test_an_engine_gives_what_one_process_gives(name: str, places: list[Path]) -> None:
    for way in anywhere.WAYS[name]:
        assert wrong(way, places) == []


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="pip install ray")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", anywhere.WAYS["ray"])
def test_a_cluster_of_two_nodes_gives_what_one_process_gives(way: anywhere.Way, places: list[Path]) -> None:
    assert wrong(way, places) == []


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("moto", "obstore")),
    reason="pip install obstore 'moto[server]'",
)
@pytest.mark.filterwarnings("ignore")
def test_a_bucket_gives_what_a_folder_gives(places: list[Path]) -> None:
    assert wrong(anywhere.bucket, places) == []


def test_other_rows_and_another_answer_are_noticed(places: list[Path]) -> None:
    def halved(every: Sequence[Path]) -> Iterator[tuple[Path, Run]]:
        for place in every:
            run = ingest_run(place)
            yield place, Run(run.name, {table: frame.head(1) for table, frame in run.frames.items()})

    def renamed(every: Sequence[Path]) -> Iterator[tuple[Path, Run]]:
        for place in every:
            yield place, Run("another", ingest_run(place).frames)

    assert [how.partition(":")[0] for _, how in wrong(halved, places[:2])] == ["other rows"] * 2
    assert ["another" in how for _, how in wrong(renamed, places[:2])] == [True] * 2
