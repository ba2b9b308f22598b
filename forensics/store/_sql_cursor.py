"""A place among the tokens of a statement, and the statement as it is written anew up to there."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from forensics.errors import UsageError
from forensics.store import _sql_words as words
from forensics.store._sql_tokens import Token, refused

#: The parser of polars gives up at 50 of its own.
_DEPTH = 48
_BEGINS = ("SELECT", "WITH", "VALUES")
#: Names that a relation may have, in small letters, and how each is written.
Scope = Mapping[str, str]


class Cursor:
    """Takes tokens one by one and writes each anew; a method takes what it is named for."""

    def __init__(self, tokens: Sequence[Token], tables: AbstractSet[str], columns: AbstractSet[str]) -> None:
        """Begin at the first token."""
        self.written: list[str] = []
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._spelt = {name: name for name in tables | columns}

    @property
    def next(self) -> Token:
        """The token that is not yet taken."""
        return self._tokens[self._at]

    def write(self, text: str) -> None:
        """Write the next token as `text`."""
        self.written.append(text)
        self._at += 1

    def peek(self, ahead: int) -> Token:
        """A later token."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def follows(self, text: str, ahead: int = 0) -> bool:
        """Whether a word or an operator is next, or so many tokens later."""
        return self.peek(ahead).upper == text

    def begins_query(self) -> bool:
        """Whether the brackets that are next hold a query."""
        at = self._at
        while self._tokens[at].upper == "(":
            at += 1
        return at > self._at and self._tokens[at].upper in _BEGINS

    def take_if(self, *texts: str) -> bool:
        """Take one of these words or operators, if it is next."""
        if self.next.upper not in texts:
            return False
        self.write(self.next.upper)
        return True

    def take(self, *texts: str) -> None:
        """Take one of these words or operators."""
        if not self.take_if(*texts):
            raise self.unexpected(" or ".join(texts))

    def name(self, what: str) -> str:
        """Take a name, and give it as it is spelt from here on: as it was first, or as the schema does."""
        token = self.next
        if token.kind != "name" and not self.is_bare_name():
            raise self.unexpected(what)
        spelt = self._spelt.setdefault(token.text.lower(), token.text)
        text = spelt if token.kind == "word" else token.text
        self.write(f'"{text}"')
        return text

    def is_bare_name(self) -> bool:
        """Whether a word without a part in the grammar is next."""
        return self.next.kind == "word" and self.next.upper not in words.RESERVED

    def string(self) -> None:
        """Take a text in single quotes."""
        if self.next.kind != "string":
            raise self.unexpected("a text in quotes")
        self.write(f"'{self.next.text}'")

    def number(self) -> None:
        """Take a number."""
        if self.next.kind != "number":
            raise self.unexpected("a number")
        self.write(self.next.text)

    def several(self, each: Callable[[Scope], object], scope: Scope) -> None:
        """Take one or more, with commas between."""
        each(scope)
        while self.take_if(","):
            each(scope)

    @contextmanager
    def deeper(self) -> Generator[None]:
        """Bound how deep brackets nest."""
        self._depth += 1
        if self._depth > _DEPTH:
            why = f"more than {_DEPTH} levels deep"
            raise refused(why)
        yield
        self._depth -= 1

    def unexpected(self, expected: str) -> UsageError:
        """Give the error of a token that cannot stand here."""
        return refused(f"{expected} was expected, not {self.next.text or 'the end'}")
