"""Text and hyperparameters of event files, read with tensorboard's own message classes, which load on first use.

Each of these raises `MissingPackage` where tensorboard is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from forensics.errors import InputError
from forensics.io.optional import optional
from forensics.io.tolerant_json import dumps, loads

MOST_BYTES = 1 << 20
_FAILURE = 2


def _message(module: str, name: str, raw: bytes) -> Any:  # noqa: ANN401 - generated classes have no types
    """Decode with the class `name` of a generated module; None for what is too long or no such message."""
    if len(raw) > MOST_BYTES:
        return None
    decode_error = optional("google.protobuf.message", "tensorboard").DecodeError
    found = optional(module, "tensorboard")
    for part in name.split("."):
        found = getattr(found, part)
    try:
        return found.FromString(raw)
    except decode_error:
        return None


def _value(raw: bytes) -> Any:  # noqa: ANN401
    return _message("tensorboard.compat.proto.summary_pb2", "Summary.Value", raw)


def text_of(raw: bytes) -> str | None:
    """Text of a string tensor, its elements joined by newlines; None when it is no such thing."""
    value = _value(raw)
    if value is None:
        return None
    parts: list[bytes] = list(value.tensor.string_val)
    return "\n".join(part.decode("utf-8", "replace") for part in parts)


def hparams_of(raw: bytes) -> Iterator[tuple[str, str, str]]:
    """Facts (key, JSON value, family) of one value of the hparams plugin."""
    value = _value(raw)
    content: bytes = b"" if value is None else value.metadata.plugin_data.content
    data = _message("tensorboard.plugins.hparams.plugin_data_pb2", "HParamsPluginData", content)
    if data is None:
        return
    start: Any = data.session_start_info.hparams
    for name in sorted(cast("dict[str, Any]", start)):
        kind: str | None = start[name].WhichOneof("kind")
        if kind in {"number_value", "string_value", "bool_value"}:
            yield name, dumps(getattr(start[name], str(kind)), compact=True).decode(), "config"
    # writers mark success when they start, so only a failure says something
    if data.session_end_info.status == _FAILURE:
        yield "hparams.session_end", '"failure"', "exit"


def config_of(tag: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Facts of a text that is one JSON object, its keys below the tag; nothing for other text."""
    if not text.lstrip().startswith("{"):
        return
    try:
        data = loads(text.encode("utf-8", "replace"))
    except InputError:
        return
    if isinstance(data, dict):
        stem = tag.removesuffix("/text_summary")
        for key, value in cast("dict[str, object]", data).items():
            yield f"{stem}.{key}", dumps(value, compact=True).decode(), "config"
