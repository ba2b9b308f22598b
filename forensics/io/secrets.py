"""Secrets in a text, by the forms in `secret_forms.tsv`: their own shape, or the name that they are given to.

The table is the one place that knows a form; the store and `--redact` both read it. Its kinds: `shape` is the secret
itself, `line` a phrase whose groups hold it, `person` a mail address (the store only), `named` a name whose value is
always a secret, `hinted` a name whose value is one if it looks random, `setting` a name that only sounds like one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from forensics.io.tables import table_rows
from forensics.patterns import lazily

HIDDEN = "***"
#: What follows the name of a value: `token*` in the table means each of these, `token+` a blank as well.
_FOLLOWERS, _BLANK = ("=", ":", '"', "'", "\\"), " "
#: Where a secret may begin: after no letter or digit, an escape of a string or of a URL, or a colour of a terminal.
_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=[\d;\[]m))"
_SUFFIX = r"(?:[_-]?(?:\d{1,3}|ids?|value|text|string|base|hash|json|b64|base64|bytes|data|new|old|prod|dev|test))?"
_QUOTE = r"\\*[\"'`]"
_VALUE = (
    rf"(?:[bruf]{{1,2}}(?=\\*[\"']))?(?:(?P<quote>{_QUOTE})(?P<quoted>(?:(?!(?P=quote))[^\n]){{1,4096}})"
    r"|(?P<bare>[^\s,;&\"'`\\<>})\]]+))"
)
_GIVEN = r"(?:[^\S\n]{0,8}(?:=>|:=|==?|:)[^\S\n]{0,8}|[\s,]{1,40}\\*[\"']?value\\*[\"']?\s{0,8}[:=]\s{0,8})"
_NAME_CHARS = 60
_NAME = lazily(r"[\w.-]*\Z")
#: Values that are no secret: nothing, a word for nothing, a mark, a variable, a call, what a person has hidden already.
_EMPTY = lazily(
    r"(?i)(?:none|null|nil|true|false|yes|no|on|off|n/?a|empty|dummy|unset|undefined|not[_ -]?set|required|optional|str"
    r"|string|bytes|int|any|x+|\.+|-+|<.*|\[.*|\{.*|\*.*|\$\{?\w+\}?|\$\(.*|%\w+%|%\(.*|\d{1,3}(?:\.\d*)?)[.:]?"
    r"|[A-Za-z_.]+[(\[].*|(?:self|args?|cfg|config|opts?|os|env|settings|params|kwargs)\.[\w.]+",
    re.DOTALL,
)
_PROSE = lazily(r"[A-Za-z]+['.]?")
#: Measured on random values of 16 to 40 characters from six alphabets, and on 77,087 values of public logs and
#: settings. Shannon's entropy of 3.5 bits (gitleaks' generic rule) misses 18 % of 32 hexadecimal digits; 2.8 bits miss
#: none of them and 3.4 % of 16. Words change between letters and digits, or to a capital, in few places of their
#: longest piece: 2.4 % of the public values look random (hashes, ids of runs), 0.1 to 7 % of random ones of 24 do not.
LEAST_CHARS, LEAST_BITS, LEAST_PIECE_CHARS, LEAST_TURNS = 16, 2.8, 10, 0.1
_PIECE = lazily(r"[A-Za-z0-9+=]+")
_TURN = lazily(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])|(?<=[a-z])(?=[A-Z])")


class Form(Struct, frozen=True):
    """A row of the table; `examples` and `near_misses` hold made-up parts as `{x34}`."""

    name: str
    kind: str
    needles: tuple[str, ...]
    pattern: str
    examples: tuple[str, ...]
    near_misses: tuple[str, ...]
    source: str


@cache
def forms() -> tuple[Form, ...]:
    """Give all rows of `secret_forms.tsv`, in its order."""
    return tuple(
        Form(name, kind, tuple(_needles(needles)), pattern, _cells(examples), _cells(misses), source)
        for name, kind, needles, pattern, examples, misses, source in table_rows("forensics.io", "secret_forms.tsv")
    )


def _cells(text: str) -> tuple[str, ...]:
    return tuple(text.split(" | ")) if text else ()


def _needles(text: str) -> Iterator[str]:
    for needle in text.split():
        if needle[-1] in "*+":
            followers = (*_FOLLOWERS, _BLANK) if needle[-1] == "+" else _FOLLOWERS
            yield from (needle[:-1] + follower for follower in followers)
        else:
            yield needle


@cache
def needles() -> tuple[str, ...]:
    """Give literals in lower case so that every text with a secret has one, but for the forms of `bare_patterns`."""
    return tuple(dict.fromkeys(needle for form in forms() for needle in form.needles))


@cache
def bare_patterns() -> tuple[str, ...]:
    """Give the patterns, also for engines without look-around, of the forms that no literal announces."""
    return tuple(form.pattern for form in _of("shape") if not form.needles)


@cache
def _of(*kinds: str) -> tuple[Form, ...]:
    return tuple(form for form in forms() if form.kind in kinds)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    inner = pattern.removeprefix("(?i)")
    return re.compile(_EDGE + (f"(?:{inner})" if inner == pattern else f"(?i:{inner})"))


def _names(kind: str) -> str:
    return "|".join(form.pattern for form in _of(kind))


@cache
def _assigned() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of `name=value` in its spellings, and of `--name value`; only the last word of a name is looked for."""
    word = rf"(?:(?P<named>(?:{_names('named')}){_SUFFIX})|(?P<hinted>{_names('hinted')}))"
    flag = rf"(?:(?<![\w-])--?[\w-]{{0,{_NAME_CHARS}}}?|\b(?:setenv|ENV)\s+[\w-]{{0,{_NAME_CHARS}}}?)"
    return (
        re.compile(rf"(?i){word}(?:{_QUOTE}\]?)?{_GIVEN}(?P<value>{_VALUE})"),
        re.compile(rf"(?i){flag}{word}(?:{_QUOTE})?[\s,]{{1,8}}(?P<value>(?!\\*[\"']?-){_VALUE})"),
    )


#: A name of a secret ends in one of the table's, which have 40 characters or fewer with what may follow them; the
#: search for one takes the square of the length.
_NAME_END_CHARS = 80


@cache
def _keys() -> tuple[re.Pattern[str], re.Pattern[str]]:
    return (
        re.compile(rf"(?i)(?:.*[_-]|.*?)(?:{_names('named')}){_SUFFIX}\Z", re.DOTALL),
        re.compile(rf"(?i)(?:^|[_.\-/])(?:{_names('setting')})\Z"),
    )


def looks_random(value: str) -> bool:
    """Whether a value may be made by a generator of keys: long, of many characters, letters and digits mixed."""
    if len(value) < LEAST_CHARS or " " in value or value[0] in "/~":  # a path
        return False
    piece = max(_PIECE.findall(value), key=len, default="")
    if len(piece) < LEAST_PIECE_CHARS or not any(c.isdigit() for c in piece):
        return False
    bits = -sum(n / len(value) * math.log2(n / len(value)) for n in Counter(value).values())
    return bits >= LEAST_BITS and len(_TURN.findall(piece)) >= LEAST_TURNS * len(piece)


def names_a_secret(key: str) -> bool:
    """Whether whatever is given to this name, one part of a dotted key, is a secret."""
    return _keys()[0].match(key[-_NAME_END_CHARS:]) is not None


def is_setting(key: str) -> bool:
    """Whether a name that ends in `token` or `key` is a setting of a model or of data, as `pad_token` is."""
    return _keys()[1].search(key) is not None


def is_empty(value: str) -> bool:
    """Whether a value is only a placeholder: nothing, `None`, `<pad>`, `$TOKEN`, `***`."""
    return not value or _EMPTY.fullmatch(value) is not None


def without_secrets(text: str, hidden: str = HIDDEN, *, persons: bool = False) -> str:
    """Give a text with every secret replaced by `hidden`; with `persons` mail addresses, too."""
    lowered = text.lower()
    given = False
    for form in forms():
        if form.needles and not any(needle in lowered for needle in form.needles):
            continue
        if form.kind in ("shape", "line") or (form.kind == "person" and persons):
            text = _compiled(form.pattern).sub(lambda found: _shape_hidden(found, hidden), text)
        elif form.kind in ("named", "hinted"):
            given = True
    for pattern in _assigned() if given else ():
        text = _values_hidden(text, pattern, hidden)
    return text


def _shape_hidden(found: re.Match[str], hidden: str) -> str:
    """Replace the groups of a match, or all of it where it has none."""
    if not found.re.groups:
        return hidden
    for number in range(1, found.re.groups + 1):
        if found[number] is not None:
            start, end = found.span(number)
            return found[0][: start - found.start()] + hidden + found[0][end - found.start() :]
    return found[0]


def _values_hidden(text: str, pattern: re.Pattern[str], hidden: str) -> str:
    """A match whose value does not count may hide another behind its name, so the search goes on within it."""
    parts: list[str] = []
    done = at = 0
    while found := pattern.search(text, at):
        group = "quoted" if found["quoted"] is not None else "bare"
        start, end = found.span(group)
        if _is_secret(found, found[group]):
            parts += [text[done:start], hidden]
            done = at = end
        else:
            at = found.end("named" if found["named"] else "hinted")
    return "".join(parts) + text[done:] if parts else text


def _is_secret(found: re.Match[str], value: str) -> bool:
    word = "named" if found["named"] else "hinted"
    if is_empty(value) or value.lower() == found[word].lower():
        return False
    if word == "hinted":
        before = _NAME.search(found.string, max(0, found.start(word) - _NAME_CHARS), found.start(word))
        return looks_random(value) and not is_setting((before[0] if before else "") + found[word])
    end = found.end("value")
    goes_on = found.string[end : end + 1] == " " and found.string[end + 1 : end + 2].isalpha()
    spaced = found.string[found.start("value") - 1].isspace() and found["bare"] is not None
    return not (spaced and goes_on and _PROSE.fullmatch(value))
