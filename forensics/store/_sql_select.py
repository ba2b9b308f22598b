"""One SELECT, let through by a guard that knows the run's tables and nothing that opens a file, and written anew.

The engines have grammars of their own. What matters here is where a statement could lead out, and that is four places:
how it and each query in brackets begins, what stands as a relation, what is called, and words that change something or
make a relation of something else. At each of them only what is listed passes. An engine sees what is written here:
comments gone, names in double quotes, every relation a table of the run or a name that the statement itself gives.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msgspec import Struct, field

from forensics.errors import UsageError
from forensics.patterns import lazily
from forensics.store import _sql_words as words

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
#: The parser of polars gives up at 50 levels of its own.
_DEPTH = 48
_BEGINS = ("SELECT", "WITH", "VALUES")
#: Words that end the relations of a query.
_SETS = frozenset(("UNION", "INTERSECT", "EXCEPT"))
_BEHIND_FROM = _SETS | {
    *("SELECT", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH")
}
#: Calls with a FROM before a value in their brackets.
_FROM_INSIDE = frozenset(("EXTRACT", "TRIM", "SUBSTRING"))
_CASTS = frozenset(("CAST", "TRY_CAST"))


# Tokens; comments end here, and text that two engines could cut at different places is refused.


class Token(NamedTuple):
    """One token: `kind` is word, name (in quotes), string, number, op or end; `text` is the text between quotes."""

    kind: str
    text: str

    @property
    def upper(self) -> str:
        """A bare word in capitals, an operator as it is, nothing for all else: the form that the grammar compares."""
        return self.text.upper() if self.kind in ("word", "op") else ""


END = Token("end", "")


def tokens_of(sql: str) -> list[Token]:
    """Cut SQL into tokens, ended by `END`.

    Raises `UsageError` at a character that is no SQL, a quote or comment without an end, or a backslash before a quote.
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
            raise refused(f"{sql[at]!r} at character {at + 1} is not understood")
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


class Select(Struct, frozen=True):
    """A statement that may run: its text as written anew, and the tables that it names."""

    sql: str
    tables: frozenset[str]


def select_of(sql: str, tables: AbstractSet[str], columns: AbstractSet[str]) -> Select:
    """Let one SELECT over `tables` through; bare names of tables and `columns` count in any case.

    Raises `UsageError` for all else, with the token in the way.
    """
    guard = _Guard(tokens_of(sql), tables, {name: name for name in (*tables, *columns)})
    if (first := guard.next.upper) in words.CHANGES:
        raise refused(f"{first}: a query reads, it changes nothing")
    guard.statement()
    return Select(" ".join(guard.written), frozenset(guard.used))


class _Level(Struct):
    """One pair of brackets: its owner, whether it holds a query, and whether relations follow in it now."""

    owner: str = ""
    is_query: bool = False
    in_from: bool = False


class _Guard(Struct):
    """Takes tokens one by one and writes each anew; `scope` are the relations by their names in small letters."""

    tokens: list[Token]
    tables: AbstractSet[str]
    spelt: dict[str, str]
    written: list[str] = field(default_factory=list[str])
    used: set[str] = field(default_factory=set[str])
    scope: dict[str, str] = field(default_factory=dict[str, str])
    levels: list[_Level] = field(default_factory=lambda: [_Level()])
    at: int = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def peek(self) -> Token:
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def statement(self) -> None:
        self.scope = {table: table for table in self.tables}
        self._query()
        while self.next.kind != "end":
            if self.next.upper == ";" and self.peek().kind == "end":
                self._write(";")
            else:
                self._any()
        if len(self.levels) > 1:
            raise self._unexpected(")")

    def _any(self) -> None:
        """Take the current token, with those that belong to it."""
        token, level = self.next, self.levels[-1]
        if token.kind == "string":
            self._write(f"'{token.text}'")
        elif token.kind == "number":
            self._write(token.text)
        elif token.upper in words.BANNED:
            raise self._unexpected("a SELECT over the tables of the run")
        elif token.upper in ("(", "[", ")", "]"):
            self._bracket()
        elif token.upper == "FROM" and not self._is_value_from():
            level.in_from = level.is_query
            self._next_relation()
        elif token.upper == "JOIN" or (token.upper == "," and level.in_from):
            self._next_relation()
        elif self.peek().upper == "(" and token.kind != "op":
            self._call()
        else:
            self._word()

    def _bracket(self) -> None:
        """One that opens where a value may begin, or one that closes."""
        before = self.written[-1][-1]
        if self.next.upper in (")", "]"):
            self._close()
        elif self.next.upper == "(" and (before in "')]" or before.isdigit()):
            raise self._unexpected("an operator")
        else:
            self._open("[" if self.next.upper == "[" else "")

    def _next_relation(self) -> None:
        """`FROM`, `JOIN` or a comma, and the relation behind it."""
        if not self.levels[-1].in_from:
            raise self._unexpected("a value")
        self._write(self.next.upper)
        self._relation()

    def _word(self) -> None:
        """A word of the grammar, a column or an operator."""
        token, level, before = self.next, self.levels[-1], self.written[-1]
        is_type = before == "::" or (level.owner in _CASTS and before == "AS")
        if token.upper == ";":
            raise self._unexpected("the end of the only statement")
        if is_type and token.upper not in words.TYPES:
            raise self._unexpected("a type")
        is_named = token.kind == "name" or before == "AS" or token.text.lower() in self.spelt
        if token.kind == "op" or is_type or (token.upper in words.RESERVED and before != "."):
            self._write(token.upper)
        elif before != "NULLS" and (is_named or token.upper not in words.IN_PLACES):
            self._name("a column")
        else:
            self._write(token.text)
        if token.upper in _BEHIND_FROM and level.is_query:
            level.in_from = False
        if token.upper in _SETS:
            if not level.is_query:
                raise self._unexpected("a value")
            for word in ("ALL", "DISTINCT", "BY", "NAME"):
                if self.next.upper == word:
                    self._write(word)
            self._query(again=True)

    def _query(self, *, again: bool = False) -> None:
        """The begin of a query: `SELECT`, `VALUES`, `WITH` and what it names, or one in brackets."""
        self.levels[-1].is_query, self.levels[-1].in_from = True, False
        if self.next.upper == "(":
            self._open("(")
        elif self.next.upper == "WITH" and not again:
            self._write("WITH")
            self._named_query()
        elif self.next.upper in ("SELECT", "VALUES"):
            self._write(self.next.upper)
        else:
            raise self._unexpected("SELECT")

    def _named_query(self) -> None:
        """`name [(columns)] AS (query)`; those that follow come when its bracket is closed."""
        name = self._name("the name of a subquery")
        self._columns()
        if self.next.upper != "AS" or self.peek().upper != "(":
            raise self._unexpected("AS (")
        self._write("AS")
        self.scope = {**self.scope, name.lower(): name}
        self._open("WITH")

    def _open(self, owner: str) -> None:
        """A bracket: of a query where one must stand there or one begins in it, else of what `owner` says."""
        if len(self.levels) > _DEPTH:
            raise refused(f"more than {_DEPTH} levels deep")
        self._write(self.next.upper)
        self.levels.append(_Level(owner))
        if owner in ("(", "WITH", "EXISTS") or self._begins_query():
            self._query()
        elif owner == "FROM":
            self.levels[-1].in_from = True
            self._relation()

    def _begins_query(self) -> bool:
        at = self.at
        while self.tokens[at].upper == "(":
            at += 1
        return self.tokens[at].upper in _BEGINS

    def _close(self) -> None:
        owner = self.levels[-1].owner
        if len(self.levels) == 1 or (owner == "[") is not (self.next.upper == "]"):
            raise self._unexpected("the end" if len(self.levels) == 1 else "the bracket that closes")
        self._write(self.next.upper)
        self.levels.pop()
        if owner == "FROM":
            self._alias()
        elif owner == "WITH" and self.next.upper == ",":
            self._write(",")
            self._named_query()
        elif owner == "WITH":
            self._query(again=True)

    def _relation(self) -> None:
        """A table, a name given by WITH, or brackets with a query or with more relations; and what it is called."""
        token = self.next
        if token.upper == "(":
            self._open("FROM")
            return
        if token.kind == "string" or (
            token.kind in ("word", "name") and self.peek().kind == "op" and self.peek().text in ("(", ".")
        ):
            raise refused(f"{token.text}: a query reads only the tables of the run, no file and no function in FROM")
        if token.kind not in ("word", "name") or token.upper in words.RESERVED:
            raise self._unexpected("a table of the run")
        if (name := token.text.lower()) not in self.scope:
            raise refused(f"no table {token.text}")
        self.used |= {name} & self.tables
        self._write(f'"{self.scope[name]}"')
        self._alias()

    def _alias(self) -> None:
        """The alias of a relation: `[AS] name [(columns)]`."""
        if self.next.upper == "AS":
            self._write("AS")
        elif self.next.kind != "name" and (self.next.kind != "word" or self.next.upper in words.RESERVED):
            return
        self._name("a name")
        self._columns()

    def _columns(self) -> None:
        """`(a, b)`: names and nothing else."""
        if self.next.upper == "(":
            self._write("(")
            self._name("a column")
            while self.tokens[self.at].upper == ",":
                self._write(",")
                self._name("a column")
            if self.tokens[self.at].upper != ")":
                raise self._unexpected(")")
            self._write(")")

    def _call(self) -> None:
        """The token before a bracket: a function by its bare name, a type, or a word of the grammar."""
        token = self.next
        is_function = token.kind == "word" and token.text.lower() in words.FUNCTIONS
        if token.upper not in words.BEFORE_BRACKETS and not is_function:
            why = f"{token.text}(): there is no such function in a query, which reads only the tables of the run"
            raise refused(why)
        if token.upper == "USING" or (token.upper in ("EXCLUDE", "EXCEPT") and self.written[-1:] == ["*"]):
            self._write(token.upper)
            self._columns()
        elif token.upper in _BEHIND_FROM:
            self._word()
        else:
            self._write(token.text)
            self._open("" if token.upper == "FROM" else token.upper)

    def _is_value_from(self) -> bool:
        """Whether FROM is between values: in `EXTRACT(year FROM …)`, or behind `IS DISTINCT`."""
        behind_is = self.written[-2:] == ["IS", "DISTINCT"] or self.written[-3:] == ["IS", "NOT", "DISTINCT"]
        return behind_is or (self.levels[-1].owner in _FROM_INSIDE and not self.levels[-1].is_query)

    def _name(self, what: str) -> str:
        """Take a name, and give it as it is spelt from here on: as it was first, or as the schema does."""
        token = self.next
        if token.kind != "name" and (token.kind != "word" or token.upper in words.RESERVED):
            raise self._unexpected(what)
        spelt = self.spelt.setdefault(token.text.lower(), token.text)
        text = spelt if token.kind == "word" else token.text
        self._write(f'"{text}"')
        return text

    def _write(self, text: str) -> None:
        self.written.append(text)
        self.at += 1

    def _unexpected(self, expected: str) -> UsageError:
        return refused(f"{expected} was expected, not {self.next.text or 'the end'}")
