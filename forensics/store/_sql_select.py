"""One SELECT, parsed by a grammar that knows the run's tables and nothing that opens a file, and written anew.

An engine sees only what is written here: names in double quotes, every relation a table of the run or a name that the
statement itself gives to a subquery. What the grammar does not know is refused.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from forensics.store import _sql_words as words
from forensics.store._sql_cursor import Scope
from forensics.store._sql_expression import Expression
from forensics.store._sql_tokens import refused, tokens_of

_SET_OPERATIONS = ("UNION", "INTERSECT", "EXCEPT")


@dataclass(frozen=True, slots=True)
class Select:
    """A statement that may run: its text as written anew, and the tables that it names."""

    sql: str
    tables: frozenset[str]


def select_of(sql: str, tables: AbstractSet[str], columns: AbstractSet[str]) -> Select:
    """Parse one SELECT over `tables`; bare names of tables and `columns` count in any case.

    Raises:
        UsageError: for all else, with what stands in the way.
    """
    reader = _Statement(tokens_of(sql), tables, columns)
    if (first := reader.next.upper) in words.CHANGES:
        why = f"{first}: a query reads, it changes nothing"
        raise refused(why)
    reader.query({table: table for table in tables})
    reader.take_if(";")
    if reader.next.kind != "end":
        raise reader.unexpected("the end of the only statement")
    return Select(" ".join(reader.written), reader.used & tables)


class _Statement(Expression):
    """The grammar of queries, on top of that of expressions; `used` are the relations that were named."""

    used: frozenset[str] = frozenset()

    def query(self, scope: Scope) -> None:
        """`[WITH …] SELECT … [UNION …] [ORDER BY …] [LIMIT …]`."""
        with self.deeper():
            if self.take_if("WITH"):
                scope = self._named_queries(scope)
            self._set_operand(scope)
            while self.take_if(*_SET_OPERATIONS):
                self.take_if("ALL", "DISTINCT")
                if self.take_if("BY"):
                    self.take("NAME")
                self._set_operand(scope)
            self.ordered(scope)
            if self.take_if("LIMIT") and not self.take_if("ALL"):
                self.expression(scope)
            if self.take_if("OFFSET"):
                self.expression(scope)
                self.take_if("ROW", "ROWS")
            if self.take_if("FETCH"):
                self.take("FIRST", "NEXT")
                self.number()
                self.take("ROW", "ROWS")
                self.take("ONLY")

    def _named_queries(self, scope: Scope) -> Scope:
        while True:
            name = self.name("the name of a subquery")
            self._columns()
            self.take("AS")
            self.take("(")
            self.query(scope)
            self.take(")")
            scope = {**scope, name.lower(): name}
            if not self.take_if(","):
                return scope

    def _set_operand(self, scope: Scope) -> None:
        if self.take_if("("):
            self.query(scope)
            self.take(")")
        elif self.take_if("VALUES"):
            self.several(self._row, scope)
        else:
            self.take("SELECT")
            self._select(scope)

    def _row(self, scope: Scope) -> None:
        self.take("(")
        self.several(self.expression, scope)
        self.take(")")

    def _select(self, scope: Scope) -> None:
        if not self.take_if("ALL") and self.take_if("DISTINCT") and self.take_if("ON"):
            self._row(scope)
        self.several(self._item, scope)
        if self.take_if("FROM"):
            self.several(self._relation, scope)
        if self.take_if("WHERE"):
            self.expression(scope)
        if self.take_if("GROUP"):
            self.take("BY")
            if not self.take_if("ALL"):
                self.several(self._grouping, scope)
        if self.take_if("HAVING"):
            self.expression(scope)
        if self.take_if("WINDOW"):
            self.several(self._named_window, scope)
        if self.take_if("QUALIFY"):
            self.expression(scope)

    def _item(self, scope: Scope) -> None:
        if self.take_if("*") or self.expression(scope) == "*":
            self._all_but(scope)
        else:
            self._alias()

    def _all_but(self, scope: Scope) -> None:
        """What may follow a star: `EXCLUDE`, `ILIKE`, `REPLACE`, `RENAME`."""
        if self.take_if("ILIKE"):
            self.string()
        if self.take_if("EXCLUDE", "EXCEPT") and not self._columns():
            self.name("a column")
        if self.take_if("REPLACE", "RENAME"):
            self.take("(")
            self.several(self._renamed, scope)
            self.take(")")

    def _renamed(self, scope: Scope) -> None:
        self.expression(scope)
        self.take("AS")
        self.name("a column")

    def _grouping(self, scope: Scope) -> None:
        """An expression, `ROLLUP (…)`, `CUBE (…)`, `GROUPING SETS (…)`, or the empty set `()`."""
        if self.take_if("GROUPING"):
            self.take("SETS")
        elif not (self.follows("(", 1) and self.take_if("ROLLUP", "CUBE")) and not self._empty_set():
            self.expression(scope)
            return
        self.take("(")
        if not self.follows(")"):
            self.several(self._grouping, scope)
        self.take(")")

    def _empty_set(self) -> bool:
        return self.follows("(") and self.follows(")", 1)

    def _named_window(self, scope: Scope) -> None:
        self.name("the name of a window")
        self.take("AS")
        self.window(scope)

    def _relation(self, scope: Scope) -> None:
        self._factor(scope)
        while self.next.upper in words.JOINS or self.follows("JOIN"):
            while not self.take_if("JOIN"):
                self.take(*words.JOINS)
            self._factor(scope)
            if self.take_if("ON"):
                self.expression(scope)
            elif self.take_if("USING"):
                self._columns()

    def _factor(self, scope: Scope) -> None:
        """A table, a name given by WITH, a query in brackets, or joined relations in brackets."""
        with self.deeper():
            if self.follows("("):
                is_query = self.begins_query()
                self.take("(")
                if is_query:
                    self.query(scope)
                else:
                    self._relation(scope)
                self.take(")")
            else:
                self._table(scope)
            if self._alias():
                self._columns()

    def _table(self, scope: Scope) -> None:
        token = self.next
        if token.kind == "string" or (
            token.kind in ("word", "name") and (self.follows("(", 1) or self.follows(".", 1))
        ):
            why = f"{token.text}: a query reads only the tables of the run, no file and no function in FROM"
            raise refused(why)
        if token.kind not in ("word", "name") or token.upper in words.RESERVED:
            raise self.unexpected("a table of the run")
        if (name := token.text.lower()) not in scope:
            why = f"no table {token.text}"
            raise refused(why)
        self.used |= {name}
        self.write(f'"{scope[name]}"')

    def _alias(self) -> bool:
        if self.take_if("AS") or self.next.kind == "name" or self.is_bare_name():
            self.name("a name")
            return True
        return False

    def _columns(self) -> bool:
        if not self.take_if("("):
            return False
        self.several(lambda _: self.name("a column"), {})
        self.take(")")
        return True
