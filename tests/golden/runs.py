"""The golden runs: run directories of the lab and of makers in one packed file, with a label and today's answers.

    python tests/golden/runs.py               show every answer that changed, and how many are right
    python tests/golden/runs.py --wrong       list the kept answers that their labels call wrong
    python tests/golden/runs.py --write       keep today's answers, for a review of the difference
    python tests/golden/runs.py --make        make the runs of `make/` anew, then --write
    python tests/golden/runs.py --add DIR     pack what the lab left in DIR (runs/ and truth/), then --write

`runs.tar.zst` holds the runs, `labels.json` what is right to say, `answers.json` what commands say, `answers.txt` what
`triage` prints.
"""

from __future__ import annotations

import argparse
import difflib
import io
import json
import os
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import zstandard

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lab")]
import answers  # noqa: E402 - the folder is no package
import make  # noqa: E402 - same
import score  # noqa: E402 - the lab's: one way to compare an answer with the truth

PACK, LABELS, ANSWERS, TEXTS = (HERE / name for name in ("runs.tar.zst", "labels.json", "answers.json", "answers.txt"))
#: A run of the lab that is larger is left out: the pack is part of every clone.
MOST_BYTES = 400_000
#: The whole pack.
MOST_PACKED_BYTES = 12_000_000
_WEIGHTS = (".pt", ".pth", ".bin", ".safetensors", ".ckpt")
#: When a made run was written: 2026-01-01, so that the pack is the same on every machine.
_MADE_AT_S = 1_767_225_600
_LAB = "job-"


@dataclass(frozen=True, slots=True)
class Told:
    """What is said of one run: the answers of all commands, and the text of `triage`."""

    name: str
    answers: dict[str, Any]
    text: str


def unpacked(place: Path) -> list[Path]:
    """Write the golden runs below `place`; gives their folders in the order of their names."""
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().stream_reader(PACK.read_bytes()).read())) as pack:
        pack.extractall(place, filter="data")
    return sorted(path for path in place.iterdir() if path.is_dir())


def told(place: Path) -> Told:
    """Read a run and ask every command."""
    run = answers.read(place)
    report = answers.judged(run)
    return Told(place.name, answers.answers(run, report), answers.text(run, report))


def all_told(places: list[Path]) -> list[Told]:
    """Ask of every run, on two processes."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return list(pool.map(told, places, chunksize=8))


def all_compared(places: Mapping[str, Path]) -> dict[str, Any]:
    """What `diff` says of each pair, asked on two processes."""
    pairs = sorted(kept(LABELS)["pairs"].items())
    sides = [([places[base] for base in pair["base"]], places[pair["cand"]]) for _, pair in pairs]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        return dict(zip((name for name, _ in pairs), pool.map(compared, *zip(*sides, strict=True)), strict=True))


def compared(base: Sequence[Path], cand: Path) -> dict[str, Any]:
    """What `diff` says of one pair."""
    return answers.compared([answers.read(place) for place in base], answers.read(cand))


def kept(path: Path) -> dict[str, Any]:
    """A file of this folder; empty while there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": {}, "pairs": {}}


def add(lab: Path) -> None:
    """Pack the runs of a lab's folder beside those that are kept; weights become a few bytes of the same name."""

    def change(place: Path, labels: dict[str, Any]) -> None:
        for truth_file in sorted((lab / "truth").glob("*.json")):
            truth, job = json.loads(truth_file.read_text(encoding="utf-8")), lab / "runs" / truth_file.stem
            files = [path for path in job.rglob("*") if path.is_file()]
            contents = {path: b"weights" if path.suffix in _WEIGHTS else path.read_bytes() for path in files}
            if truth["dropped"] or sum(map(len, contents.values())) > MOST_BYTES:
                continue
            for path, data in contents.items():
                _put(place / truth_file.stem / path.relative_to(job), data, path.stat().st_mtime)
            labels["runs"][truth_file.stem] = {name: truth[name] for name in sorted(truth) if name in score.TRUTH}

    _repacked(change)


def make_anew() -> None:
    """Make the runs of every maker, in place of all that are not the lab's."""

    def change(place: Path, labels: dict[str, Any]) -> None:
        for path in [path for path in place.iterdir() if not path.name.startswith(_LAB)]:
            for file in sorted(path.rglob("*"), reverse=True):
                file.rmdir() if file.is_dir() else file.unlink()
            path.rmdir()
        labels["runs"] = {name: label for name, label in labels["runs"].items() if name.startswith(_LAB)}
        for one in make.made():
            for path, data in one.files.items():
                _put(place / one.name / path, data if isinstance(data, bytes) else data.encode(), _MADE_AT_S)
            labels["runs"][one.name] = one.label.document()
        labels["pairs"] = {
            pair.name: {"base": list(pair.base), "cand": pair.cand, "verdict": pair.verdict} for pair in make.pairs()
        }

    _repacked(change)


def _put(target: Path, data: bytes, at_s: float) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    os.utime(target, (at_s, at_s))


def _repacked(change: Callable[[Path, dict[str, Any]], None]) -> None:
    labels = kept(LABELS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if PACK.exists():
            unpacked(place)
        change(place, labels)
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as pack:
            for path in sorted(path for path in place.rglob("*") if path.is_file()):
                info = pack.gettarinfo(path, str(path.relative_to(place)))
                info.uid, info.gid, info.uname, info.gname, info.mode = 0, 0, "", "", 0o644
                info.mtime = int(info.mtime)
                pack.addfile(info, io.BytesIO(path.read_bytes()))
        PACK.write_bytes(zstandard.ZstdCompressor(level=19).compress(out.getvalue()))
    LABELS.write_text(_json(labels), encoding="utf-8")


def _json(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def texts(now: list[Told]) -> str:
    """What `triage` prints of every run, one page after the other."""
    return "\n".join(f"==> {one.name} <==\n{one.text}" for one in now)


def difference(before: str, after: str, what: str) -> Iterator[str]:
    """Lines of a diff of two texts."""
    yield from difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{what} kept", f"{what} now", lineterm="", n=2
    )


def rightness(labels: Mapping[str, Any], now: list[Told]) -> str:
    """How often each part of the answer agrees with its label: a wrong answer that is kept is known to be wrong."""
    right: dict[str, Counter[bool]] = {name: Counter() for name in score.FIELDS}
    for one in now:
        for name, value in score.judged(labels[one.name], score.of_triage(one.answers["triage"])).items():
            if value is not None:
                right[name][value] += 1
    parts = (f"{name} {count[True]}/{count.total()}" for name, count in right.items())
    return f"{len(now)} golden runs: {', '.join(parts)} right"


def wrong() -> Iterator[str]:
    """A line for each kept answer that its label calls wrong: known defects, in the order of their names."""
    found = kept(ANSWERS)["runs"]
    for name, label in sorted(kept(LABELS)["runs"].items()):
        said = score.of_triage(found[name]["triage"])
        row = {"name": name, "truth": {**dict.fromkeys(score.TRUTH), **label}, "said": said}
        yield from filter(None, [score.missed(row | {"right": score.judged(label, said)})])


def main() -> int:
    """Show, or keep, what changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--add", type=Path)
    given = parser.parse_args()
    if given.wrong:
        print("\n".join(wrong()))  # noqa: T201 - that is what it is for
        return 0
    if given.make:
        make_anew()
    if given.add:
        add(given.add)
    with tempfile.TemporaryDirectory() as folder:
        places = {path.name: path for path in unpacked(Path(folder))}
        now = all_told(list(places.values()))
        document = _json({"runs": {one.name: one.answers for one in now}, "pairs": all_compared(places)})
    changed = [
        *difference(ANSWERS.read_text(encoding="utf-8") if ANSWERS.exists() else "", document, "answers"),
        *difference(TEXTS.read_text(encoding="utf-8") if TEXTS.exists() else "", texts(now), "texts"),
    ]
    print("\n".join(changed))  # noqa: T201 - that is what it is for
    print(rightness(kept(LABELS)["runs"], now))  # noqa: T201 - same
    if given.write or given.make or given.add:
        ANSWERS.write_text(document, encoding="utf-8")
        TEXTS.write_text(texts(now), encoding="utf-8")
        return 0
    return int(bool(changed))


if __name__ == "__main__":
    raise SystemExit(main())
