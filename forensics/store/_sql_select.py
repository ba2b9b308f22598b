"""One SELECT, let through by a guard that knows the run's tables and nothing that opens a file, and written anew.

The engines have grammars of their own. What matters here is where a statement could lead out, and that is four places:
how it and each query in brackets begins, what stands as a relation, what is called, and words that change something or
make a relation of something else. At each of them only what is listed passes. An engine sees what is written here:
comments gone, names in double quotes, every relation a table of the run or a name that the statement itself gives.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from msgspec import Struct, field

from forensics.errors import UsageError
from forensics.store import _sql_words as words
from forensics.store._sql_tokens import Token, refused, tokens_of

#: The parser of polars gives up at 50 levels of its own.
_DEPTH = 48
_BEGINS = ("SELECT", "WITH", "VALUES")
#: What ends the relations of a query.
_SETS = frozenset(("UNION", "INTERSECT", "EXCEPT"))
_BEHIND_FROM = _SETS | {
    *("SELECT", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH")
}
#: Calls in whose brackets FROM stands before a value.
_FROM_INSIDE = frozenset(("EXTRACT", "TRIM", "SUBSTRING"))
_CASTS = frozenset(("CAST", "TRY_CAST"))


class Select(Struct, frozen=True):
    """A statement that may run: its text as written anew, and the tables that it names."""

    sql: str
    tables: frozenset[str]


def select_of(sql: str, tables: AbstractSet[str], columns: AbstractSet[str]) -> Select:
    """Let one SELECT over `tables` through; bare names of tables and `columns` count in any case.

    Raises:
        UsageError: for all else, with what stands in the way.
    """
    guard = _Guard(tokens_of(sql), tables, {name: name for name in (*tables, *columns)})
    if (first := guard.next.upper) in words.CHANGES:
        why = f"{first}: a query reads, it changes nothing"
        raise refused(why)
    guard.statement()
    return Select(" ".join(guard.written), frozenset(guard.used))


class _Level(Struct):
    """One pair of brackets: what it belongs to, whether it holds a query, and whether relations stand in it now."""

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
        """The token that is not yet taken."""
        return self.tokens[self.at]

    def peek(self) -> Token:
        """The token after that."""
        return self.tokens[min(self.at + 1, len(self.tokens) - 1)]

    def statement(self) -> None:
        """Take all."""
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
        """Take one token where it stands, with those that belong to it."""
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
            why = f"more than {_DEPTH} levels deep"
            raise refused(why)
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
            why = f"{token.text}: a query reads only the tables of the run, no file and no function in FROM"
            raise refused(why)
        if token.kind not in ("word", "name") or token.upper in words.RESERVED:
            raise self._unexpected("a table of the run")
        if (name := token.text.lower()) not in self.scope:
            why = f"no table {token.text}"
            raise refused(why)
        self.used |= {name} & self.tables
        self._write(f'"{self.scope[name]}"')
        self._alias()

    def _alias(self) -> None:
        """What a relation is called: `[AS] name [(columns)]`."""
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
            while self._is_next(","):
                self._write(",")
                self._name("a column")
            if not self._is_next(")"):
                raise self._unexpected(")")
            self._write(")")

    def _is_next(self, text: str) -> bool:
        return self.next.upper == text

    def _call(self) -> None:
        """What stands before a bracket: a function by its bare name, a type, or a word of the grammar."""
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
        """Whether FROM stands between values: in `EXTRACT(year FROM …)`, or behind `IS DISTINCT`."""
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
