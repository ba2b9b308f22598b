"""Events that a W&B transaction log tells by itself: exit, resume or fork, a warning of preemption, alerts."""

from __future__ import annotations

from forensics.formats.rows.out import Out, write_row
from forensics.formats.wandb._items import leaves
from forensics.io.tolerant_json import dumps

_LEVELS = {"INFO": "info", "WARN": "warning", "ERROR": "error"}
_CONTEXT = {"role": "context", "shape": ""}
_ENDED = {"role": "benign", "shape": ""}


class Marks:
    """Writes events; each is put at the byte of its record."""

    def __init__(self, out: Out, rank: int | None, quote_chars: int) -> None:
        """Write to `out`; a quote has up to `quote_chars` characters."""
        self._out = out
        self._rank = rank
        self._chars = quote_chars

    def put(  # noqa: PLR0913 - the cells of one row
        self, byte: int, t_ns: int | None, *, code: str, level: str, text: str, attrs: dict[str, str]
    ) -> None:
        """Write one event."""
        row = {
            "seq": byte,
            "byte": byte,
            "t_ns": t_ns,
            "rank": self._rank,
            "level": level,
            "code": code,
            "text": text[: self._chars],
            "attrs": dumps(attrs, compact=True).decode(),
        }
        write_row(self._out, "events", row)

    def exit(self, byte: int, t_ns: int | None, code: int) -> None:
        """Say how the run ended."""
        attrs = {**(_ENDED if code == 0 else _CONTEXT), "exit_code": str(code)}
        name, level = ("wandb.ended", "info") if code == 0 else ("wandb.exit", "error")
        text = f"exit record of the run: exit code {code}"
        self.put(byte, t_ns, code=name, level=level, text=text, attrs=attrs)

    def preempting(self, byte: int, t_ns: int | None) -> None:
        """Say that the run was told to give its machine back."""
        text = "the run marked itself as about to be preempted"
        self.put(byte, t_ns, code="wandb.preempting", level="warning", text=text, attrs=dict(_CONTEXT))

    def begun(self, byte: int, t_ns: int | None, step: int, how: str) -> None:
        """Say that the run goes on from an earlier one; `how` is `resumed` or `forked`."""
        text = f"the run was {how} and goes on at step {step}"
        attrs = {**_CONTEXT, "how": how, "starting_step": str(step)}
        self.put(byte, t_ns, code=f"wandb.{how}", level="info", text=text, attrs=attrs)

    def alert(self, data: bytes, at: int, end: int, *, byte: int, t_ns: int | None) -> None:
        """Repeat an alert that the program raised."""
        texts = {name: str(value) for name, value in leaves(data, at, end, {1: "title", 2: "text", 3: "level"})}
        said = ": ".join(part for part in (texts.get("title"), texts.get("text")) if part)
        level = _LEVELS.get(texts.get("level", "").upper(), "info")
        self.put(byte, t_ns, code="wandb.alert", level=level, text=said, attrs=dict(_CONTEXT))


def exit_code(data: bytes, at: int, end: int) -> int:
    """Exit code of an exit record; 0 where its field is left out.

    Raises `WireError` when the bytes are no such message.
    """
    code = dict(leaves(data, at, end, {1: "code"})).get("code", 0)
    return code if isinstance(code, int) else 0


def stamp_ns(data: bytes, at: int, end: int) -> int:
    """A timestamp message as unix nanoseconds; 0 where it is none.

    Raises `WireError` when the bytes are no such message.
    """
    found = dict(leaves(data, at, end, {1: "seconds", 2: "nanos"}))
    seconds, nanos = found.get("seconds", 0), found.get("nanos", 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        return 0
    return seconds * 1_000_000_000 + nanos if 0 < seconds < 9_200_000_000 and 0 <= nanos < 1_000_000_000 else 0
