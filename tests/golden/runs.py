"""The golden runs: real run directories in one packed file, with a label of each and the diagnosis that it gets today.

    python tests/golden/runs.py               show every diagnosis that changed
    python tests/golden/runs.py --write       keep today's diagnoses, for a review of the difference
    python tests/golden/runs.py --add DIR     pack what the lab left in DIR (runs/ and truth/), then --write

`runs.tar.zst` holds the runs, `labels.json` what is right to say, `diagnoses.json` what is said.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import zstandard

from forensics import pipeline
from forensics.model import Report

HERE = Path(__file__).resolve().parent
PACK, LABELS, DIAGNOSES = HERE / "runs.tar.zst", HERE / "labels.json", HERE / "diagnoses.json"
#: A run that packs to more is left out: the pack is part of every clone.
MOST_BYTES = 400_000
_WEIGHTS = (".pt", ".pth", ".bin", ".safetensors", ".ckpt")


def unpacked(place: Path) -> list[Path]:
    """Write the golden runs below `place`; gives their folders in the order of their names."""
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().stream_reader(PACK.read_bytes()).read())) as pack:
        pack.extractall(place, filter="data")
    return sorted(path for path in place.iterdir() if path.is_dir())


def diagnosis(report: Report) -> dict[str, Any]:
    """What is said of a run: the verdict, and each finding with its onset."""
    verdict = report.verdict
    return {
        "outcome": verdict.outcome.value,
        "shape": verdict.shape.value if verdict.shape else None,
        "headline": verdict.headline,
        "onset": verdict.onset.step,
        "culprits": list(verdict.culprits),
        "cause": verdict.cause,
        "confidence": verdict.confidence.value,
        "chain": list(verdict.chain),
        "findings": sorted(
            f"{one.rule} {one.severity.value} {one.confidence.value} @{one.onset.step}: {one.title}"
            for one in report.findings
        ),
    }


def diagnosed(places: list[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and diagnosis of each run."""
    for place in places:
        yield place.name, diagnosis(pipeline.triage(place))


def kept(path: Path) -> dict[str, Any]:
    """A file of this folder; empty while there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def add(lab: Path) -> None:
    """Pack the runs of a lab's folder beside those that are kept; weights become a few bytes of the same name."""
    labels = kept(LABELS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if PACK.exists():
            unpacked(place)
        for truth_file in sorted((lab / "truth").glob("*.json")):
            truth = json.loads(truth_file.read_text(encoding="utf-8"))
            files = [path for path in (lab / "runs" / truth_file.stem).rglob("*") if path.is_file()]
            contents = {path: b"weights" if path.suffix in _WEIGHTS else path.read_bytes() for path in files}
            if truth["dropped"] or sum(map(len, contents.values())) > MOST_BYTES:
                continue
            for path, data in contents.items():
                target = place / truth_file.stem / path.relative_to(lab / "runs" / truth_file.stem)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                os.utime(target, (path.stat().st_mtime, path.stat().st_mtime))
            labels[truth_file.stem] = {
                key: truth[key] for key in sorted(truth) if key not in {"seconds", "codes", "dropped"}
            }
        _pack(place)
    LABELS.write_text(json.dumps(labels, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _pack(place: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as pack:
        for path in sorted(place.rglob("*")):
            info = pack.gettarinfo(path, str(path.relative_to(place)))
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = int(info.mtime)
            pack.addfile(info, io.BytesIO(path.read_bytes()) if path.is_file() else None)
    PACK.write_bytes(zstandard.ZstdCompressor(level=19).compress(out.getvalue()))


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Lines of a diff of two sets of diagnoses."""
    texts = [json.dumps(one, indent=1, sort_keys=True, ensure_ascii=False).splitlines() for one in (before, after)]
    yield from difflib.unified_diff(*texts, "kept", "now", lineterm="", n=2)


def main() -> int:
    """Show, or keep, what changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--add", type=Path)
    given = parser.parse_args()
    if given.add:
        add(given.add)
    with tempfile.TemporaryDirectory() as folder:
        now = dict(diagnosed(unpacked(Path(folder))))
    changed = list(difference(kept(DIAGNOSES), now))
    print("\n".join(changed))  # noqa: T201 - that is what it is for
    if given.write or given.add:
        text = json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False)
        DIAGNOSES.write_text(text + "\n", encoding="utf-8")
        return 0
    return int(bool(changed))


if __name__ == "__main__":
    raise SystemExit(main())
