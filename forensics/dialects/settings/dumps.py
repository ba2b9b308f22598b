"""Settings that a program prints at its start: argument tables, `Namespace(...)`, dictionaries, `key: value` blocks.

Only lines that hold one of a few literals are looked at, among the first `SCANNED_BYTES` of a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from forensics.dialects.settings import command_lines
from forensics.dialects.settings.literal import Leaf, Scalar, Walk, leaves, scalar
from forensics.patterns import lazily

SCANNED_BYTES = 4 << 20
_DUMPS, _VALUES, _DUMP_BYTES, _LINES = 40, 4000, 128 << 10, 2000
_COMMAND_BYTES, _NEAR = 16 << 10, 160
_FEWEST = 3
_CALL = lazily(rb"[A-Za-z_]\w*(?:Namespace|Arguments|Args|Config|Params|Configuration)\(|\b(?:Namespace|Config)\(")
_HEAD = lazily(
    rb"(?i)\b(?:(?:train(?:ing)?|run|model|experiment|full|resolved|final|job|data|optim(?:izer)?|engine)[ _/-]?)*"
    rb"(?:config(?:uration)?|arguments|args|hyper-?parameters|hparams|parameters|settings|options)[ \w]{0,24}[:=][ \t]*"
)
_TABLE = lazily(rb"-{3,} ?(?:[Ee]nd of )?[\w ]{0,40}arguments ?-{3,}|DeepSpeedEngine configuration:")
_DOTTED = lazily(r"(?:^|[\s:\]])([A-Za-z_][\w.-]*) \.{2,} ?(.*?)\s*$")
_ENGINE = lazily(r"\[config\.py:\d+:print\] {1,4}([A-Za-z_][\w.-]*) [. ]*(.*?)\s*$")
_PAIR = lazily(r"^[\s|*\-•]*([A-Za-z_][\w./-]{0,80})\s*(?::|=|\|)\s*(\S.*?)\s*\|?\s*$")
_PREFIX = lazily(
    r"^(?:\S+ +){0,6}?(?:\[?(?:INFO|DEBUG|WARNING)\]?)(?:[\s:|>-]|\[[^\]]*\])*|^\[?(?:default|rank ?)?\d+\]?:\s"
    r"|^\[[^\]]*\]\s*"
    r"|^\d{4}-\d\d-\d\d[T ][\d:.,]+Z?[\s:|-]*"
)
#: `git commit: 3f2a9c1`, `Git hash = …`: the version of the program, which no block of settings holds.
_COMMIT = lazily(
    rb"(?i)\bgit[ _-]?(?:commit|hash|sha|rev(?:ision)?)(?:[ _-]?(?:hash|sha|id))?\s*[:=]\s*['\"]?([0-9a-f]{7,40})\b"
)
_RATIO = lazily(r"(dataset \d{1,4}), input: [\d.e+-]+, achieved: ([\d.e+-]+)\s*$")
_PASSED = lazily(r"(?:self|args|config|cfg|hparams|opt)\.\w")
_PROSE = lazily(r"(?:\S+ ){3}")
_LITERALS = (
    *(b"Namespace(", b"Arguments(", b"Args(", b"Config(", b"Params(", b"onfig:", b"onfiguration:", b"rguments:"),
    b"> sample ratios:",
    *(b"it commit", b"it_commit", b"it hash", b"it_hash", b"it sha", b"it SHA", b"it_sha", b"it rev", b"it_rev"),
    *(b"args:", b"arameters:", b"hparams:", b"onfig: ", b"onfig = ", b"args = ", b"rguments --", b" options:"),
)
#: Each digit as a 0.
_NO_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)


class Printed(Struct, frozen=True):
    """One setting of a log: key, value, the offset of its line in the piece, and `config` or `env`."""

    key: str
    value: Scalar
    at: int
    family: str = "config"


def settings(data: bytes) -> list[Printed]:
    """Give every setting that a piece of a log prints, in order, each key and value once."""
    found: dict[tuple[str, str], Printed] = {}
    done, dumps, tried = 0, 0, -1
    for at in _places(data):
        if at < done or dumps >= _DUMPS or len(found) >= _VALUES:
            continue
        begin = data.rfind(b"\n", 0, at) + 1
        rows, end = _dump(data, at, begin)
        if not rows and begin != tried:
            rows, end = _command(data, at, begin)
            tried = begin
        if rows:
            dumps, done = dumps + 1, end
            for row in rows[:_VALUES]:
                found.setdefault((row.key, repr(row.value)), row)
    return sorted(found.values(), key=lambda row: row.at)[:_VALUES]


def _places(data: bytes) -> list[int]:
    """Offsets of the literals, in order; at most a few hundred of each."""
    found: set[int] = set()
    shapes = b"\n".join(set(data.translate(_NO_DIGITS).split(b"\n")))  # of a log of steps a few lines
    for literal in (*_LITERALS, *command_lines.LITERALS):
        if literal.translate(_NO_DIGITS) not in shapes:
            continue
        at, count = data.find(literal), 0
        while at >= 0 and count < 300:
            found.add(at)
            at, count = data.find(literal, at + len(literal)), count + 1
    return sorted(found)


def _dump(data: bytes, at: int, begin: int) -> tuple[list[Printed], int]:
    """The settings printed around an offset of the line that starts at `begin`, and where they end.

    Only what is near is looked at: a line may be as long as the log.
    """
    stop = data.find(b"\n", at)
    stop = len(data) if stop < 0 else stop
    low = max(begin, at - _NEAR)
    near = data[low : min(stop, at + _NEAR)]
    if _TABLE.search(near):
        return _table(data, stop + 1)
    if b"> sample ratios:" in near:
        return _ratios(data, stop + 1)
    if call := _CALL.search(near):
        rows, end = _bracket(data, low + call.start())
        if rows:
            return rows, end
    if head := _HEAD.search(near):
        after = data[low + head.end() : min(stop, low + head.end() + _DUMP_BYTES)].lstrip()
        if after[:1] == b"{":
            return _bracket(data, data.index(b"{", low + head.end()))
        if not after:
            return _block(data, stop + 1)
    return [], at


def _command(data: bytes, at: int, begin: int) -> tuple[list[Printed], int]:
    """The options of a command that the line prints, or the commit of the program, and where the line ends."""
    stop = data.find(b"\n", at)
    if commit := _COMMIT.search(data[begin : begin + _COMMAND_BYTES].partition(b"\n")[0]):
        return [Printed("git_commit", commit[1].decode(), begin)], max(stop, at + 1)
    commands = command_lines.arguments(data[begin : begin + _COMMAND_BYTES].decode("utf-8", "replace"))
    return [Printed(c.key, c.value, begin, c.family) for c in commands], max(stop, at + 1)


def _bracket(data: bytes, at: int) -> tuple[list[Printed], int]:
    """A dictionary or a call; its lines may have the prefix of a logger only where it is on one line."""
    text = data[at : at + _DUMP_BYTES].decode("utf-8", "replace")
    walk = Walk()
    found: list[Leaf] = []
    for leaf in leaves(text, 0, walk):
        found.append(leaf)
        if len(found) >= _VALUES:
            break
    if len(found) < _FEWEST or (walk.end < 0 and len(found) < 2 * _FEWEST):
        return [], at
    if sum(leaf.path.rsplit(".", 1)[-1].isdigit() for leaf in found) > len(found) // 2 or _is_code(found):
        return [], at
    plain = text.isascii()
    places = [leaf.at if plain else len(text[: leaf.at].encode()) for leaf in found]
    rows = [Printed(leaf.path, leaf.value, at + place) for leaf, place in zip(found, places, strict=True)]
    return rows, at + max(walk.last, 1)


def _is_code(found: list[Leaf]) -> bool:
    """Whether a call of program text: `Config(a=a, b=self.b)`."""
    passed = sum(isinstance(v := leaf.value, str) and (v == leaf.path or bool(_PASSED.match(v))) for leaf in found)
    return 3 * passed > len(found)


def _rows_after(data: bytes, at: int) -> Iterator[tuple[int, str]]:
    for _ in range(_LINES):
        if at >= len(data):
            return
        stop = data.find(b"\n", at)
        stop = len(data) if stop < 0 else stop
        yield at, data[at : min(stop, at + 4000)].decode("utf-8", "replace").rstrip("\r")
        at = stop + 1


def _table(data: bytes, at: int) -> tuple[list[Printed], int]:
    """Rows of `key ..... value` until the table says that it ends, or ten lines hold none."""
    rows: list[Printed] = []
    end, without = at, 0
    for begin, line in _rows_after(data, at):
        found = _DOTTED.search(line) or _ENGINE.search(line)
        if found:
            if found[2] not in {"{", "["}:
                rows.append(Printed(found[1], scalar(found[2]) if found[2] else "", begin))
            without, end = 0, begin + 1
            continue
        without += 1
        if without > 10 or re.search(r"-{3,} ?end of", line):
            break
    return (rows, end) if len(rows) >= _FEWEST else ([], at)


def _ratios(data: bytes, at: int) -> tuple[list[Printed], int]:
    """Shares of a blend as they were drawn: `dataset 0, input: 0.3, achieved: 0.2999`."""
    rows: list[Printed] = []
    for begin, line in _rows_after(data, at):
        found = _RATIO.search(line)
        if found is None:
            break
        rows.append(Printed(f"consumed.{found[1]}", scalar(found[2]), begin))
        at = begin + 1
    return rows, at


def _block(data: bytes, at: int) -> tuple[list[Printed], int]:
    """Rows of `key: value`, nested by their indent, or a bracket that begins on the next line."""
    first = next(_rows_after(data, at), None)
    if first is None:
        return [], at
    if first[1].lstrip()[:1] == "{":
        return _bracket(data, data.index(b"{", at))
    rows = list(_pairs(data, at))
    prose = sum(isinstance(row.value, str) and bool(_PROSE.match(row.value)) for row in rows)
    return (rows, rows[-1].at + 1) if len(rows) >= _FEWEST and 2 * prose <= len(rows) else ([], at)


def _pairs(data: bytes, at: int) -> Iterator[Printed]:
    """Rows until one is less indented, is no pair, or has a key again: then a log of steps follows."""
    above: list[tuple[int, str]] = []
    seen, outer = set[str](), -1
    for begin, line in _rows_after(data, at):
        bare = _bare(line)
        indent = len(bare) - len(bare.lstrip())
        if re.fullmatch(r"[\s=\-+|*]*", line) and not seen:
            continue
        opens = re.fullmatch(r"\s*([A-Za-z_][\w.-]{0,80}):\s*", bare)
        found = opens or (_PAIR.match(bare) if len(bare) <= 1000 else None)
        outer = indent if outer < 0 else outer
        if found is None or indent < outer:
            return
        while above and above[-1][0] >= indent:
            above.pop()
        key = ".".join((*(name for _, name in above), found[1]))
        if key in seen:
            return
        seen.add(key)
        if opens:
            above.append((indent, opens[1]))
        else:
            yield Printed(key, scalar(found[2]), begin)


def _bare(line: str) -> str:
    """The line without the prefix of a logger."""
    found = _PREFIX.match(line)
    return line[found.end() :] if found else line
