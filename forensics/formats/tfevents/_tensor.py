"""The single number of a rank-0 `TensorProto`; dtypes and field numbers are those of tensorboard's `tensor.proto`."""

from __future__ import annotations

import struct

from forensics.io.records.protobuf import BYTES, FIXED32, FIXED64, VARINT, fields, signed, varint

_BFLOAT16, _HALF = 14, 19
#: dtype → how one element stands in `tensor_content`
_PACKED = {
    1: struct.Struct("<f"),
    2: struct.Struct("<d"),
    3: struct.Struct("<i"),
    4: struct.Struct("<B"),
    5: struct.Struct("<h"),
    6: struct.Struct("<b"),
    9: struct.Struct("<q"),
    10: struct.Struct("<?"),
    17: struct.Struct("<H"),
    _HALF: struct.Struct("<e"),
    22: struct.Struct("<I"),
    23: struct.Struct("<Q"),
}
#: dtype → field that repeats its values
_FIELD = {1: 5, 2: 6, 3: 7, 4: 7, 5: 7, 6: 7, 9: 10, 10: 11, _BFLOAT16: 13, 17: 7, _HALF: 13, 22: 16, 23: 17}
_WORD = struct.Struct("<H")
_FLOAT = struct.Struct("<f")
_UNSIGNED = (10, 23)


def tensor_scalar(data: bytes, begin: int, finish: int) -> tuple[int, float | None]:
    """Dtype of a tensor, and its number when it is one number of rank 0, else None.

    Raises:
        WireError: when the bytes are not a message.
    """
    dtype, rank, content = 0, 0, b""
    repeated: list[tuple[int, int, int, int]] = []
    for number, kind, start, end in fields(data, begin, finish):
        if number == 1 and kind == VARINT:
            dtype = varint(data, start)[0]
        elif number == 2 and kind == BYTES:
            rank += sum(1 for inner, _, _, _ in fields(data, start, end) if inner == 2)
        elif number == 4 and kind == BYTES:
            content = data[start:end]
        elif len(repeated) < 2:
            repeated.append((number, kind, start, end))
    if rank or dtype not in _FIELD:
        return dtype, None
    if content:
        return dtype, _from_content(dtype, content)
    own = [entry for entry in repeated if entry[0] == _FIELD[dtype]]
    return dtype, _from_field(dtype, data, *own[0][1:]) if len(own) == 1 else None


def _from_content(dtype: int, content: bytes) -> float | None:
    if dtype == _BFLOAT16:
        return _bfloat16(_WORD.unpack(content)[0]) if len(content) == 2 else None
    layout = _PACKED[dtype]
    return float(layout.unpack(content)[0]) if len(content) == layout.size else None


def _bfloat16(word: int) -> float:
    return _FLOAT.unpack(struct.pack("<I", (word & 0xFFFF) << 16))[0]


def _from_field(dtype: int, data: bytes, kind: int, start: int, end: int) -> float | None:
    """The value of a repeated field that holds exactly one, packed or not."""
    if dtype in (1, 2):
        size = 4 if dtype == 1 else 8
        wanted = kind in (BYTES, FIXED32 if dtype == 1 else FIXED64)
        return float(_PACKED[dtype].unpack_from(data, start)[0]) if wanted and end - start == size else None
    if kind not in (BYTES, VARINT) or start == end:
        return None
    value, after = varint(data, start)
    if after != end:
        return None
    if dtype in (_HALF, _BFLOAT16):
        word = value & 0xFFFF
        return _bfloat16(word) if dtype == _BFLOAT16 else float(struct.unpack("<e", _WORD.pack(word))[0])
    if dtype == 10:
        return float(bool(value))
    return float(value if dtype == 23 else signed(value))
