"""SQL text into tokens; comments end here, and text that two engines could cut at different places is refused."""

from __future__ import annotations

import re
from typing import NamedTuple

from forensics.errors import UsageError
from forensics.patterns import lazily

HELP = "forensics query RUN lists tables and columns"
_BLOCK = lazily(r"/\*|\*/")
_TOKEN = lazily(
    r"""
    (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
  | '(?P<string>(?:[^']|'')*)'
  | "(?P<quoted>[^"]+)"(?!")
  | `(?P<ticked>[^`"]+)`
  | (?P<op>->>|->|::|\|\||<=>|<=|>=|<>|!=|==|//|!~\*|!~|~\*|[-+*/%&|^~<>=.,;()\[\]])
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """One token: `kind` is word, name (in quotes), string, number, op or end; `text` is what stands between quotes."""

    kind: str
    text: str

    @property
    def upper(self) -> str:
        """A bare word in capitals, an operator as it is, nothing for all else: what grammar is compared with."""
        return self.text.upper() if self.kind in ("word", "op") else ""


END = Token("end", "")


def tokens_of(sql: str) -> list[Token]:
    """Cut SQL into tokens, ended by `END`.

    Raises:
        UsageError: at a character that is no SQL, a quote or comment without an end, or a backslash before a quote.
    """
    found: list[Token] = []
    at = 0
    while at < len(sql):
        if sql[at].isspace():
            at += 1
        elif sql.startswith("--", at):
            at = sql.find("\n", at) + 1 or len(sql)
        elif sql.startswith("/*", at):
            at = _after_comment(sql, at)
        elif (match := _TOKEN.match(sql, at)) is not None:
            found.append(_token(match))
            at = match.end()
        else:
            why = f"{sql[at]!r} at character {at + 1} is not understood"
            raise refused(why)
    return [*found, END]


def refused(why: str) -> UsageError:
    """Give the error of a statement that is refused before any engine sees it."""
    return UsageError(f"SQL: {why}", help=HELP)


def _token(match: re.Match[str]) -> Token:
    kind, text = str(match.lastgroup), match[str(match.lastgroup)]
    if kind == "string" and ("\\'" in text or text.endswith("\\")):  # some engines read on behind such a quote
        raise refused("a backslash before a quote is not understood; double the quote")
    if kind in ("quoted", "ticked"):
        if "\\" in text or not text.isprintable():
            raise refused("a name in quotes has no backslash and no control character")
        return Token("name", text)
    return Token(kind, text)


def _after_comment(sql: str, start: int) -> int:
    depth = 0
    for mark in _BLOCK.finditer(sql, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise refused("a comment has no end")
