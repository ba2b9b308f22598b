"""Real event files, where a collection of them lies beside the checkout: every point as protobuf decodes it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tensorboard.compat.proto import event_pb2
from tensorboard.util import tensor_util

from forensics.formats.tfevents._routes import ALL, Routes
from forensics.formats.tfevents.reader import read_points
from forensics.io.limits import DEFAULT
from forensics.io.reading import open_source
from forensics.model import Source
from forensics.store.sink import SourceSink

ROOT = Path(__file__).parents[4] / "shared" / "corpus"
NUMERIC = {1, 2, 3, 4, 5, 6, 9, 10, 14, 17, 19, 22, 23}
Point = tuple[str, int, int, int, bytes, int | None]


def files() -> list[Path]:
    found = sorted(p for p in ROOT.rglob("*tfevents*") if p.is_file()) if ROOT.is_dir() else []
    return [p for p in found if p.stat().st_size > 16 and not p.read_bytes().startswith(b"version https://git-lfs")]


def by_protobuf(data: bytes) -> list[Point]:
    """Points of the chain of lengths from the first byte on, as far as it goes; checksums are not looked at."""
    points: list[Point] = []
    at = index = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        if at + 16 + length > len(data):
            break
        event = event_pb2.Event.FromString(data[at + 12 : at + 12 + length])
        for value in event.summary.value:
            kind = value.WhichOneof("value")
            if kind == "simple_value":
                number = value.simple_value
            elif kind == "tensor" and value.tensor.dtype in NUMERIC and not value.tensor.tensor_shape.dim:
                number = float(tensor_util.make_ndarray(value.tensor))
            else:
                continue
            wall = event.wall_time
            t_ns = round(wall * 1e9) if 0 < wall < 9.2e9 else None
            points.append((value.tag, index, at, event.step, struct.pack("<d", number), t_ns))
        at, index = at + length + 16, index + 1
    return points


def by_us(path: Path, routes: Routes) -> list[Point]:
    source = Source(path.name, path.stat().st_size)
    with open_source(path, source) as opened:
        sink = SourceSink(source)
        read_points(opened, sink, DEFAULT, routes)
    frame = sink.frames().get("metrics")
    if frame is None:
        return []
    rows = frame.select("raw_name", "seq", "byte", "step", "value", "t_ns").iter_rows()
    # a canonical unit may scale the number; the corpus of event files has none that does
    return [(tag, seq, byte, step, struct.pack("<d", number), t_ns) for tag, seq, byte, step, number, t_ns in rows]


@pytest.mark.skipif(not files(), reason="no collection of real event files lies beside the checkout")
@pytest.mark.parametrize("routes", [ALL, Routes(stride=False), Routes(stride=False, template=False)], ids=str)
def test_every_real_file_gives_bit_for_bit_what_protobuf_decodes(routes: Routes) -> None:
    differing = [str(path) for path in files() if by_us(path, routes) != by_protobuf(path.read_bytes())]
    assert not differing, f"{len(differing)} of {len(files())} files: {differing[:3]}"


def test_a_made_file_compares_equal_too(tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "fixtures" / "tfevents" / "ok-tensors-text-hparams"
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(next(folder.iterdir()).read_bytes())
    assert by_us(path, ALL) == by_protobuf(path.read_bytes()) != []
    assert len(by_us(path, ALL)) == 30
