"""Whether a container lacks its end: what a save that was killed leaves. Nothing in it is unpacked."""

from __future__ import annotations

from forensics.io.reading import Opened

#: A zip archive (`torch.save`, `.keras`, `.npz`) ends with its directory and a comment of 65,535 bytes at most (APPNOTE
#: 4.3.16).
_ZIP, _ZIP_END, _ZIP_END_BYTES = b"PK\x03\x04", b"PK\x05\x06", 22 + 65_535
#: HDF5 gives its own end in its superblock: at which byte, by the superblock's version (format 3.0, II.A).
_HDF5, _HDF5_ENDS = b"\x89HDF\r\n\x1a\n", {0: 40, 1: 44, 2: 28, 3: 28}


def is_cut(opened: Opened) -> bool:
    """Whether a file is a container that says by its own layout that its end is missing; False for unknown layouts."""
    head = opened.head(64)
    if head.startswith(_ZIP):
        return _ZIP_END not in opened.tail(_ZIP_END_BYTES)
    if head.startswith(_HDF5) and len(head) > len(_HDF5) and (at := _HDF5_ENDS.get(head[len(_HDF5)])) is not None:
        return int.from_bytes(head[at : at + 8], "little") > opened.size_bytes
    return False
