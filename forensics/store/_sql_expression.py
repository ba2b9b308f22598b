"""The grammar of expressions: operands and operators in turn, so that nothing else finds a place between them."""

from __future__ import annotations

from abc import abstractmethod

from forensics.store import _sql_words as words
from forensics.store._sql_cursor import Cursor, Scope
from forensics.store._sql_tokens import refused


class Expression(Cursor):
    """The grammar of expressions; `scope` are the relations that a subquery may name."""

    @abstractmethod
    def query(self, scope: Scope) -> None:
        """Take a query."""

    def expression(self, scope: Scope) -> str:
        """Take operands with operators between; give `*` for all columns of one relation, as in `m.*`."""
        with self.deeper():
            while self.take_if(*words.PREFIXES):
                pass
            found = self._operand_with_suffixes(scope)
            while found != "*" and self._operator():
                while self.take_if(*words.PREFIXES):
                    pass
                self._right_side(scope)
            return found

    def ordered(self, scope: Scope) -> None:
        """`ORDER BY`, if it is next."""
        if self.take_if("ORDER"):
            self.take("BY")
            self.several(self._order_key, scope)

    def window(self, scope: Scope) -> None:
        """`([PARTITION BY …] [ORDER BY …] [ROWS …])`."""
        self.take("(")
        if self.take_if("PARTITION"):
            self.take("BY")
            self.several(self.expression, scope)
        self.ordered(scope)
        if self.take_if("ROWS", "RANGE", "GROUPS"):
            if self.take_if("BETWEEN"):
                self._frame_end()
                self.take("AND")
            self._frame_end()
        self.take(")")

    def _order_key(self, scope: Scope) -> None:
        if not self.take_if("ALL"):
            self.expression(scope)
        self.take_if("ASC", "DESC")
        if self.take_if("NULLS"):
            self.take("FIRST", "LAST")

    def _frame_end(self) -> None:
        if self.take_if("CURRENT"):
            self.take("ROW")
            return
        if not self.take_if("UNBOUNDED"):
            self.number()
        self.take("PRECEDING", "FOLLOWING")

    def _operator(self) -> bool:
        """Take what stands between two operands; false where none follows."""
        if self.take_if("IS"):
            self.take_if("NOT")
            if self.take_if("DISTINCT"):
                self.take("FROM")
                return True
            self.take("NULL", "TRUE", "FALSE", "UNKNOWN")
            return self._operator()
        if self.follows("NOT"):
            self.take("NOT")
            if not self.next.upper.endswith(("LIKE", "IN", "BETWEEN", "REGEXP", "SIMILAR")):
                raise self.unexpected("LIKE, IN or BETWEEN")
        if self.follows("IN"):
            return self._in()
        if self.take_if("SIMILAR"):
            self.take("TO")
            return True
        if self.take_if("AT"):
            self.take("TIME")
            self.take("ZONE")
            return True
        return self.take_if(*words.OPERATORS, "ESCAPE")

    def _in(self) -> bool:
        self.take("IN")
        if not self.follows("("):
            raise self.unexpected("(")
        return True

    def _right_side(self, scope: Scope) -> None:
        if self.follows("(", 1):
            self.take_if("ANY", "ALL", "SOME")
        self._operand_with_suffixes(scope)

    def _operand_with_suffixes(self, scope: Scope) -> str:
        found = self._operand(scope)
        while True:
            if self.take_if("::"):
                self._type()
            elif self.take_if("["):
                self.expression(scope)
                self.take("]")
            else:
                return found

    def _type(self) -> None:
        """A type: `DOUBLE PRECISION`, `DECIMAL(10, 2)`, `INT[]`."""
        if self.next.upper not in words.TYPES:
            raise self.unexpected("a type")
        self.take(self.next.upper)
        self.take_if("PRECISION", "UNSIGNED")
        if self.take_if("("):
            self.several(lambda _: self.number(), {})
            self.take(")")
        while self.follows("[") and self.follows("]", 1):
            self.take("[")
            self.take("]")

    def _operand(self, scope: Scope) -> str:
        token = self.next
        if token.kind == "number":
            self.number()
        elif token.kind == "string":
            self.string()
        elif self.follows("("):
            self._in_brackets(scope)
        elif self.follows("["):
            self._list(scope)
        elif self.take_if("CASE"):
            self._case(scope)
        elif self.follows("(", 1) and token.kind in ("word", "name"):
            self._call(scope)
        elif self.take_if("ARRAY"):
            self._list(scope)
        elif token.upper in words.TYPED and self.peek(1).kind == "string":
            self.take(*words.TYPED)
            self.string()
        elif not self.take_if(*words.LITERALS):
            return self._column()
        return ""

    def _in_brackets(self, scope: Scope) -> None:
        is_query = self.begins_query()
        self.take("(")
        if is_query:
            self.query(scope)
        else:
            self.several(self.expression, scope)
        self.take(")")

    def _list(self, scope: Scope) -> None:
        self.take("[")
        if not self.follows("]"):
            self.several(self.expression, scope)
        self.take("]")

    def _case(self, scope: Scope) -> None:
        if not self.follows("WHEN"):
            self.expression(scope)
        self.take("WHEN")
        while True:
            self.expression(scope)
            self.take("THEN")
            self.expression(scope)
            if not self.take_if("WHEN"):
                break
        if self.take_if("ELSE"):
            self.expression(scope)
        self.take("END")

    def _column(self) -> str:
        self.name("a column, a value or a function")
        while self.take_if("."):
            if self.take_if("*"):
                return "*"
            self.name("a column")
        return ""

    def _call(self, scope: Scope) -> None:
        """A function by its bare name; some have a grammar of their own."""
        token = self.next
        if token.upper == "EXISTS":
            self.take("EXISTS")
            if not self.begins_query():
                raise self.unexpected("a query in brackets")
            self._in_brackets(scope)
            return
        own = {
            "CAST": self._cast,
            "TRY_CAST": self._cast,
            "EXTRACT": self._extract,
            "POSITION": self._position,
            "SUBSTRING": self._substring,
            "TRIM": self._trim,
        }
        if token.kind != "word" or (token.upper not in own and token.text.lower() not in words.FUNCTIONS):
            why = f"{token.text}(): there is no such function in a query, which reads only the tables of the run"
            raise refused(why)
        self.write(token.text)
        self.take("(")
        own.get(token.upper, self._arguments)(scope)
        self.take(")")
        if token.upper not in own:
            self._after_call(scope)

    def _cast(self, scope: Scope) -> None:
        self.expression(scope)
        self.take("AS")
        self._type()

    def _extract(self, scope: Scope) -> None:
        if self.next.kind == "word":
            self.take(self.next.upper)
        else:
            self.string()
        self.take("FROM")
        self.expression(scope)

    def _trim(self, scope: Scope) -> None:
        self.take_if("LEADING", "TRAILING", "BOTH")
        if not self.take_if("FROM"):
            self.several(self.expression, scope)
            if not self.take_if("FROM"):
                return
        self.expression(scope)

    def _substring(self, scope: Scope) -> None:
        self.several(self.expression, scope)
        for word in ("FROM", "FOR"):
            if self.take_if(word):
                self.expression(scope)

    def _position(self, scope: Scope) -> None:
        self._operand_with_suffixes(scope)
        self.take("IN")
        self.expression(scope)

    def _arguments(self, scope: Scope) -> None:
        """`DISTINCT a, b ORDER BY c`, `*`, or nothing."""
        self.take_if("DISTINCT", "ALL")
        if not self.take_if("*") and not self.follows(")"):
            self.several(self.expression, scope)
        self.ordered(scope)
        self._nulls()

    def _nulls(self) -> None:
        if self.take_if("IGNORE", "RESPECT"):
            self.take("NULLS")

    def _after_call(self, scope: Scope) -> None:
        if self.take_if("WITHIN"):
            self.take("GROUP")
            self.take("(")
            self.ordered(scope)
            self.take(")")
        if self.follows("(", 1) and self.take_if("FILTER"):
            self.take("(")
            self.take("WHERE")
            self.expression(scope)
            self.take(")")
        self._nulls()
        if self.take_if("OVER"):
            if self.follows("("):
                self.window(scope)
            else:
                self.name("the name of a window")
