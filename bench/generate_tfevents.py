"""Event files of any size, as torch writes them: many tags at each step, one float each; written straight as bytes.

    python bench/generate_tfevents.py FILE [--mb 120] [--tags 20] [--order regular|irregular]

Deterministic. `irregular`: each step logs its tags in a new order and leaves some out, so that no period exists.
"""

from __future__ import annotations

import argparse
import random
import struct
from pathlib import Path

import numpy as np

from forensics.io.records.crc32c import masked, masked_many
from forensics.io.records.tfrecord import frame

START = 1_750_000_000.0
_STEPS = 4_096
_FIRST = ("train/loss", "train/lr", "train/grad_norm", "perf/tokens_per_sec", "perf/step_time", "gpu/mem_alloc")


def names(count: int) -> list[str]:
    """Tags of one step."""
    return [*_FIRST, *(f"layers/block_{i:02d}/act_norm" for i in range(count))][:count]


def varint(value: int) -> bytes:
    """A varint of protocol buffers."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def payload(tag: bytes, number: float, step: int, wall: float) -> bytes:
    """One event: time, step (absent when 0), and a summary of one value."""
    value = b"\x0a" + varint(len(tag)) + tag + b"\x15" + struct.pack("<f", number)
    summary = b"\x0a" + varint(len(value)) + value
    steps = b"\x10" + varint(step) if step else b""
    return b"\x09" + struct.pack("<d", wall) + steps + b"\x2a" + varint(len(summary)) + summary


def framed(payloads: list[bytes]) -> bytes:
    """All of them as records, checksums computed side by side."""
    lengths = np.array([len(p) for p in payloads], np.int64)
    joined = b"".join(payloads)
    sums = masked_many(joined, np.cumsum(lengths) - lengths, lengths).tolist()
    headers = {n: struct.pack("<QI", n, masked(_crc(struct.pack("<Q", n)))) for n in set(lengths.tolist())}
    parts: list[bytes] = []
    for body, checksum in zip(payloads, sums, strict=True):
        parts += [headers[len(body)], body, struct.pack("<I", checksum)]
    return b"".join(parts)


def _crc(data: bytes) -> int:
    from forensics.io.records.crc32c import crc32c  # noqa: PLC0415 - beside its one use

    return crc32c(data)


def write(path: Path, size_bytes: int, tags: int, order: str = "regular", seed: int = 1) -> int:
    """Write at least `size_bytes`; gives the number of points."""
    rng = random.Random(seed)
    every = [name.encode() for name in names(tags)]
    wall, step, points, written = START, 0, 0, 0
    with path.open("wb") as out:
        written += out.write(frame(b"\x09" + struct.pack("<d", wall) + b"\x1a\x0dbrain.Event:2"))
        while written < size_bytes:
            payloads: list[bytes] = []
            for _ in range(min(_STEPS, 1 + (size_bytes - written) // (58 * tags))):
                chosen = every if order == "regular" else rng.sample(every, rng.randint(1, tags))
                for k, tag in enumerate(chosen):
                    wall += rng.random() * 5e-5
                    number = float("nan") if k == 0 and step % 97 == 96 else (k + 1) / (1 + step / 1e4) + rng.random()
                    payloads.append(payload(tag, number, step, wall))
                step += 1
            written += out.write(framed(payloads))
            points += len(payloads)
    return points


def main() -> None:
    """Write one file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--mb", type=float, default=120)
    parser.add_argument("--tags", type=int, default=20)
    parser.add_argument("--order", choices=("regular", "irregular"), default="regular")
    given = parser.parse_args()
    print(f"{write(given.file, int(given.mb * 1e6), given.tags, given.order)} points in {given.file}")


if __name__ == "__main__":
    main()
