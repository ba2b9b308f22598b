"""Checkpoint folders on disk: step and state by the names of files; weights are never read or unpickled.

A pointer file (`latest`, `latest_checkpointed_iteration.txt`) is written when a save is done, so what it names was
complete; so is a folder with the `.metadata` of a distributed checkpoint, which its writer adds last, and a file with a
`DONE_` marker. A folder that is still called temporary is not complete, nor is one with an empty file of weights or one
whose container lacks its end. For all others it cannot be known. A file of weights that is text stands for weights that
are kept elsewhere (a pointer of Git LFS); where its path gives a step, that checkpoint was saved.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from forensics.formats.checkpoints.safetensors import header_bytes
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.out import write_row
from forensics.knowledge.paths import Named, named, whose
from forensics.knowledge.vocabulary import keys_of
from forensics.model import WEIGHTS

_POINTERS, _WEIGHTS = keys_of("pointer_to_a_checkpoint"), keys_of("ending_of_a_checkpoint")
#: kinds of file that also hold data sets: a checkpoint only where the path gives a step or a checkpoint's name
_SHARED = (".bin", ".npz")
#: kinds of file that hold anything: a checkpoint only where the path gives a step or an epoch
_ANYTHING = (".h5", ".hdf5", ".zip")
_NAMED = lazily(r"(?:pytorch_|adapter_|diffusion_pytorch_)?model|optimizer|scheduler|training_args|rng_state")
_INDEX = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_COMMITTED = keys_of("file_of_a_whole_checkpoint")
#: Orbax renames a folder when its save is done: all files of one that still has the first name.
_UNFINISHED = ("*.orbax-checkpoint-tmp*/*",)
_POINTER_BYTES = 4096
_TEXT = frozenset(range(32, 127)) | {9, 10, 13}
#: A zip archive (`torch.save`, `.keras`, `.npz`) ends with its directory and a comment of 65,535 bytes at most (APPNOTE
#: 4.3.16).
_ZIP, _ZIP_END, _ZIP_END_BYTES = b"PK\x03\x04", b"PK\x05\x06", 22 + 65_535
#: HDF5 gives its own end in its superblock: at which byte, by the superblock's version (format 3.0, II.A).
_HDF5, _HDF5_ENDS = b"\x89HDF\r\n\x1a\n", {0: 40, 1: 44, 2: 28, 3: 28}


@ingester(
    "checkpoint_dirs",
    version=2,
    sniff=Sniff(
        glob=(*_POINTERS, *(f"*{suffix}" for suffix in _WEIGHTS), *_INDEX, *_COMMITTED, ".metadata.tmp", "DONE_*"),
        path=_UNFINISHED,
    ),
    emits=("checkpoints",),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """State the checkpoint that one file belongs to; raises `NotMine` for text that merely has such a name."""
    del limits
    path = opened.source.path
    name = PurePosixPath(path).name
    if name.lower() in _POINTERS:
        _pointer(opened, out)
        return
    found = named(path)
    placed = found is not None and found.has_place
    if name.endswith(_WEIGHTS) and _is_text(opened.head(1024)) and not placed:
        raise NotMine("text, not weights")
    if name.endswith(".safetensors") and header_bytes(opened.head(9), opened.size_bytes) is not None:
        raise NotMine("its header is read")
    if name.endswith(_ANYTHING) and not placed:
        raise NotMine("no checkpoint by its name")
    if found is not None and (found.has_place or not name.endswith(_SHARED) or _NAMED.match(name) is not None):
        _row(found, out, complete=_complete(name, found, opened))
    out.account(skipped_bytes=opened.size_bytes, reason=WEIGHTS)


def _is_text(head: bytes) -> bool:
    return len(head) > 0 and all(byte in _TEXT for byte in head)


def _complete(name: str, found: Named, opened: Opened) -> bool | None:
    if found.temporary or name.endswith(".tmp"):
        return False
    if name.endswith(_WEIGHTS) and (opened.size_bytes == 0 or is_cut(opened)):
        return False
    return True if name in _COMMITTED or name.startswith("DONE_") else None


def _row(found: Named, out: Out, *, complete: bool | None) -> None:
    row = {"seq": 0, "step": found.step, "path": found.path, "kind": "directory", "complete": complete}
    write_row(out, "checkpoints", row)


def _pointer(opened: Opened, out: Out) -> None:
    """The one line of a pointer names a folder beside it, or gives the iteration alone; it is not opened."""
    text = opened.head(_POINTER_BYTES)
    words = text.split()
    if opened.size_bytes > _POINTER_BYTES or len(words) != 1 or not _is_text(text):
        raise NotMine("no pointer to a checkpoint")
    word = words[0].decode("ascii")
    name = f"iter_{int(word):07d}" if word.isdigit() and len(word) < 16 else PurePosixPath(word).name
    folder = opened.source.path.rpartition("/")[0]
    path = f"{folder}/{name}" if folder else name
    found = whose(path)
    _row(Named(path, found.step if found is not None else None), out, complete=True)
    out.account(read_bytes=opened.size_bytes, records=1)
    out.format("pointer")


# Whether a container lacks its end: what a save that was killed leaves. Nothing in it is unpacked.


def is_cut(opened: Opened) -> bool:
    """Whether a file is a container that says by its own layout that its end is missing; False for unknown layouts."""
    head = opened.head(64)
    if head.startswith(_ZIP):
        return _ZIP_END not in opened.tail(_ZIP_END_BYTES)
    if head.startswith(_HDF5) and len(head) > len(_HDF5) and (at := _HDF5_ENDS.get(head[len(_HDF5)])) is not None:
        return int.from_bytes(head[at : at + 8], "little") > opened.size_bytes
    return False
