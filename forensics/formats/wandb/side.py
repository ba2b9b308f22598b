"""Small files beside a W&B run: its summary, its metadata and, in the layouts of 0.9 and older, its system metrics.

The summary and the metadata are facts that back the transaction log; they are never metrics. `wandb-events.jsonl` was
written only when there was no transaction log, so its rows are metrics; so is `wandb-history.jsonl`, which is read like
any JSON lines. Under `files/` both are copies, and are passed over. User, mail, folders and remotes are left out.
"""

from __future__ import annotations

from typing import cast

from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.json_records import JsonLines, number
from forensics.formats.rows.metrics import At, MetricRows, nanoseconds
from forensics.formats.rows.text import document, settle, settle_document
from forensics.formats.wandb._facts import SLURM_KEYS, Facts
from forensics.formats.wandb._items import flat
from forensics.formats.wandb._points import Points
from forensics.formats.wandb._system import PREFIX, system_name
from forensics.io.tolerant_json import loads

_SUMMARY, _METADATA = "wandb-summary.json", "wandb-metadata.json"
_LINES = ("wandb-events.jsonl", "wandb-history.jsonl")
#: Writers of these layouts measured the CPU of the whole machine.
_OLD = "0.9.0"
_SAME = ("os", "python", "docker", "cuda_version", "cpu_count", "cpu_count_logical", "gpu_count")
_PLAIN = {
    **dict(zip(_SAME, _SAME, strict=True)),
    "gpu": "gpu_type",
    "cuda": "cuda_version",
    "cudaVersion": "cuda_version",
    "state": "wandb.state",
    "startedAt": "started_at",
    "heartbeatAt": "wandb.heartbeat_at",
}


@ingester(
    "wandb_side",
    version=1,
    sniff=Sniff(glob=(_SUMMARY, _METADATA, *_LINES), magic=(b'{"', b"{\n")),
    emits=("metrics", "facts"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one of these files, chosen by its name.

    Raises `NotMine` when it has another name, or holds no JSON object.
    """
    folder, _, name = opened.source.path.rpartition("/")
    copied = folder.rpartition("/")[2] == "files"
    if name in _LINES and copied:
        out.format("wandb copy")
        out.account(skipped_bytes=opened.size_bytes, reason="copy of what the transaction log holds")
    elif name == "wandb-events.jsonl":
        _events(opened, out, limits)
    elif name in {_SUMMARY, _METADATA}:
        _facts(opened, out, limits, is_summary=name == _SUMMARY)
    else:
        raise NotMine("no side file of a W&B run")


def _facts(opened: Opened, out: Out, limits: Limits, *, is_summary: bool) -> None:
    data = document(opened, limits)
    try:
        found = loads(data, limits)
    except InputError as error:
        out.issue("not-json", f"the document cannot be read: {error.message}")
        settle_document(opened, out, records=0, lost_bytes=opened.size_bytes)
        return
    if not isinstance(found, dict):
        raise NotMine("no JSON object")
    cells = cast("dict[str, object]", found)
    facts = Facts()
    if is_summary:
        for key, value in cells.items():
            for inner, cell in () if key.startswith("_") else flat(f"summary.{key}", value):
                if not isinstance(cell, list):
                    facts.put("progress", inner, cell)
    else:
        _metadata(cells, facts)
    facts.write(out)
    out.format("wandb summary" if is_summary else "wandb metadata")
    settle_document(opened, out, records=1)


def _metadata(cells: dict[str, object], facts: Facts) -> None:
    for key, name in _PLAIN.items():
        if isinstance(value := cells.get(key), str | int):
            facts.put("env", name, value)
    if isinstance(host := cells.get("host"), str):
        facts.put("host", "host", host)
    if isinstance(program := cells.get("program"), str):
        facts.put("env", "program", program.replace("\\", "/").rsplit("/", 1)[-1])
    if isinstance(arguments := cells.get("args"), list):
        facts.arguments([str(a) for a in cast("list[object]", arguments)[:1000]])
    slurm = cells.get("slurm")
    for key, value in cast("dict[str, object]", slurm).items() if isinstance(slurm, dict) else ():
        if SLURM_KEYS.match(key):
            facts.put("host", f"slurm.{key.lower()}", str(value))
    git = cells.get("git")
    if isinstance(git, dict) and isinstance(commit := cast("dict[str, object]", git).get("commit"), str):
        facts.put("versions", "git_commit", commit)


def _events(opened: Opened, out: Out, limits: Limits) -> None:
    points = Points(MetricRows(out, limits))
    records = 0
    lines = JsonLines(opened, out)
    for line, record in lines:
        _row(record, line.byte, opened.source.rank, points)
        records += 1
    if not records:
        raise NotMine("no JSON lines")
    points.close(_OLD)
    out.format("wandb events")
    settle(opened, out, records=records, lost_bytes=lines.lost_bytes, reason="lines that are no JSON object")


def _row(row: dict[str, object], byte: int, rank: int | None, points: Points) -> None:
    at = At(byte, rank=rank, byte=byte, t_ns=nanoseconds(number(row.get("_timestamp"))))
    for key, cell in row.items():
        value = number(cell)
        if value is not None and key.startswith(PREFIX):
            points.add(at, key, value, system_name(key.removeprefix(PREFIX), _OLD))
