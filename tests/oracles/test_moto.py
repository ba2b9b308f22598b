"""An S3 server that others wrote holds a run as a folder does: the same diagnosis, byte for byte."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from forensics.io.places.named import place_of
from forensics.pipeline import triage
from forensics.report import json_v1

obstore: Any = pytest.importorskip("obstore")
server: Any = pytest.importorskip("moto.server")

RUNS = sorted(path for path in (Path(__file__).parents[2] / "fixtures" / "runs").iterdir() if path.is_dir())
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def bucket() -> Generator[Any]:
    from obstore.store import S3Store  # noqa: PLC0415 - skipped without

    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ALLOW_HTTP", "true")
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
        patch.setenv("AWS_REGION", "us-east-1")
        _made(f"http://{host}:{port}")
        yield S3Store("bucket")
    running.stop()


def _made(url: str) -> None:
    from urllib.request import Request, urlopen  # noqa: PLC0415 - only here

    signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/s3/aws4_request"}
    urlopen(Request(f"{url}/bucket", method="PUT", headers=signed)).close()


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_diagnosis_in_a_bucket_is_that_in_a_folder(bucket: Any, run: Path) -> None:
    for path in (one for one in run.rglob("*") if one.is_file()):
        obstore.put(bucket, f"{run.name}/{path.relative_to(run).as_posix()}", path.read_bytes())
    here, there = ("".join(json_v1.render(triage(place))) for place in (run, f"s3://bucket/{run.name}"))
    assert there == here.replace(str(run), f"s3://bucket/{run.name}")


def test_odd_keys_are_read(bucket: Any) -> None:
    names = ["a b.log", "a%20b.log", "a#b.log", "ä.log", "[1]*~.log", '"q"|<x>', "sub/x.txt"]
    for name in names:
        obstore.put(bucket, f"odd/{name}", name.encode())
    from forensics.io.discover import discover  # noqa: PLC0415 - only here

    found = discover(place_of("s3://bucket/odd"))
    assert [source.path for source in found.sources] == sorted(names)
    for source in found.sources:
        with found.place.opened(source.path) as disk:
            assert disk.pread(99, 0) == source.path.encode()
