"""Text and hyperparameters of event files, read with tensorboard's own message classes, which load on first use."""

from __future__ import annotations

import json
from collections.abc import Iterator

MOST_BYTES = 1 << 20
_FAILURE = 2


def text_of(raw: bytes) -> str | None:
    """Text of a string tensor, its elements joined by newlines; None when it is no such thing."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from tensorboard.compat.proto import summary_pb2  # noqa: PLC0415

    if len(raw) > MOST_BYTES:
        return None
    try:
        value = summary_pb2.Summary.Value.FromString(raw)
    except DecodeError:
        return None
    return "\n".join(part.decode("utf-8", "replace") for part in value.tensor.string_val)


def hparams_of(raw: bytes) -> Iterator[tuple[str, str, str]]:
    """Facts (key, JSON value, family) of one value of the hparams plugin."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415
    from tensorboard.compat.proto import summary_pb2  # noqa: PLC0415
    from tensorboard.plugins.hparams import plugin_data_pb2  # noqa: PLC0415

    if len(raw) > MOST_BYTES:
        return
    try:
        value = summary_pb2.Summary.Value.FromString(raw)
        data = plugin_data_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content)
    except DecodeError:
        return
    for name in sorted(data.session_start_info.hparams):
        found = data.session_start_info.hparams[name]
        kind = found.WhichOneof("kind")
        if kind in ("number_value", "string_value", "bool_value"):
            yield name, json.dumps(getattr(found, kind)), "config"
    # writers mark success when they start, so only a failure says something
    if data.session_end_info.status == _FAILURE:
        yield "hparams.session_end", '"failure"', "exit"


def config_of(tag: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Facts of a text that is one JSON object, its keys below the tag; nothing for other text."""
    if not text.lstrip().startswith("{"):
        return
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(data, dict):
        stem = tag.removesuffix("/text_summary")
        for key, value in data.items():  # pyright: ignore[reportUnknownVariableType]
            yield f"{stem}.{key}", json.dumps(value), "config"
