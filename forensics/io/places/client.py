"""One bucket, asked: bounded tries, ranges of objects with a small cache, and errors in words of our own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime, timedelta
from typing import Any, NoReturn, TypeVar

from msgspec import Struct, field

from forensics.errors import ForensicsError, InputError, PlaceError
from forensics.io.optional import optional
from forensics.io.places.services import Refusal, refusal_of

T = TypeVar("T")
#: Of a request, the first included; between them the client waits 0.1 s, 0.2 s… up to 3 s, and gives up after a minute.
_TRIES = 8
_RETRY_S = 60
#: A body that ends early is asked for again so often.
_BODY_TRIES = 3
#: So many requests in a row without an answer, each tried `_TRIES` times: the place is down, not an object of it.
_MOST_SILENT = 3
#: Unit of reading, as text is read; measured: 23 requests for 24 objects, where ranges as asked for took 378.
BLOCK_BYTES = 8 << 20
#: Blocks that are kept: a file, one beside it, and the small files that were looked into before they are read.
_CACHE_BYTES = 32 << 20
#: How `refusals.tsv` names an object that is not there.
_GONE = "FileNotFoundError"
#: How it names one that is there already.
_TAKEN = "AlreadyExistsError"
#: Keys that a page of a listing gives at most, in every service.
_PAGE_KEYS = 1_000


class Object(Struct, frozen=True):
    """A service's description of an object: times to the second, as not every answer gives more."""

    key: str
    size_bytes: int
    mtime_ns: int
    tag: str


class Refused(InputError):  # noqa: N818 - named for the answer
    """A request had no success, for the reason `refusal`; whose words and help they are, too."""

    def __init__(self, refusal: Refusal) -> None:
        """Keep the reason."""
        super().__init__(refusal.words, help=refusal.help)
        self.refusal = refusal


@contextmanager
def told_of(place: str) -> Generator[None]:
    """Name the refusing place: raises `PlaceError` for the errors of a request."""
    try:
        yield
    except Refused as error:
        raise PlaceError(place, OSError(error.message), help=error.help) from error


class Client(Struct):
    """The connection to one bucket; it is made with the first request."""

    scheme: str
    bucket: str
    _store: Any = None
    _obstore: Any = None
    _silent: int = 0
    _objects: OrderedDict[str, Object] = field(default_factory=OrderedDict[str, Object])
    _blocks: OrderedDict[tuple[str, str, int], bytes] = field(default_factory=OrderedDict[tuple[str, str, int], bytes])
    _held_bytes: int = 0
    _heads: dict[str, bool] = field(default_factory=dict[str, bool])
    _tags: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def name(self) -> str:
        """The bucket as users write it."""
        return f"{self.scheme}://{self.bucket}"

    def listed(self, prefix: str) -> Iterator[Object]:
        """Give the objects below a prefix, page by page, in no order that could be relied on.

        Raises `Refused` when it cannot be listed, or for a key that no path can be: of its page, nothing is given;
        `PlaceError` when the bucket answers no more.
        """
        pages = self._asked(lambda: iter(self._module.list(self._bucket, prefix or None, chunk_size=_PAGE_KEYS)))
        while (page := self._asked(lambda: next(pages, None))) is not None:
            yield from (self._noted(_object(one)) for one in page)

    def children(self, prefix: str) -> tuple[list[Object], list[str]]:
        """Give the objects and the folders right below a prefix.

        Raises `Refused` when they cannot be listed; `PlaceError` when the bucket answers no more.
        """
        found = self._asked(lambda: self._module.list_with_delimiter(self._bucket, prefix or None))
        return [self._noted(_object(one)) for one in found["objects"]], list(found["common_prefixes"])

    def tag(self, key: str) -> str:
        """Give the ETag of an object, as the last listing said, else as it is opened; empty where there is none.

        Raises `Refused` when it is gone or may not be read; `PlaceError` when the bucket answers no more.
        """
        return self._tags.get(key, "") if self._tags else self.opened(key).tag

    def _noted(self, one: Object) -> Object:
        self._tags[one.key] = one.tag
        return one

    def head(self, key: str) -> Object:
        """Ask for the size and time of an object.

        Raises `Refused` when there is none, or the bucket denies it; `PlaceError` when the bucket answers no more.
        """
        return _object(self._asked(lambda: self._module.head(self._bucket, key)))

    def is_object(self, key: str) -> bool:
        """Whether an object with content has this key, asked once.

        Raises `Refused` when the bucket says no to the question; `PlaceError` when the bucket answers no more.
        """
        if key not in self._heads:
            try:
                self._heads[key] = self.head(key).size_bytes > 0
            except Refused as error:
                if error.refusal.sign != _GONE:
                    raise
                self._heads[key] = False
        return self._heads[key]

    def opened(self, key: str) -> Object:
        """Give what an object is, with its first block.

        Raises `Refused` when it is gone or may not be read; `PlaceError` when the bucket answers no more.
        """
        if key not in self._objects:
            options = {"range": (0, BLOCK_BYTES)}
            given, data = self._body(lambda: self._module.get(self._bucket, key, options=options))
            self._objects[key] = found = _object(given.meta)
            self._keep((key, found.tag, 0), data)
        return self._objects[key]

    def block(self, found: Object, index: int) -> bytes:
        """Give the bytes of an object from `index * BLOCK_BYTES` on, as it was when it was opened.

        Raises `Refused` when it is gone, may not be read, or was replaced; `PlaceError` when the bucket answers no
        more.
        """
        at = (found.key, found.tag, index)
        if at in self._blocks:
            self._blocks.move_to_end(at)
            return self._blocks[at]
        begin = index * BLOCK_BYTES
        span = begin, min(begin + BLOCK_BYTES, found.size_bytes)
        data = self._span(found, span)
        self._keep(at, data)
        return data

    def _span(self, found: Object, span: tuple[int, int]) -> bytes:
        options = {"range": span, "if_match": found.tag} if found.tag else {"range": span}
        return self._body(lambda: self._module.get(self._bucket, found.key, options=options))[1]

    def put(self, key: str, data: bytes, *, force: bool) -> bool:
        """Write an object; false where one has this key and `force` is not given, which the service decides.

        Raises `Refused` when the bucket says no; `PlaceError` when the bucket answers no more.
        """
        mode = "overwrite" if force else "create"
        try:
            self._asked(lambda: self._module.put(self._bucket, key, data, mode=mode, use_multipart=False))
        except Refused as error:
            if error.refusal.sign != _TAKEN:
                raise
            return False
        self._heads.pop(key, None)
        return True

    def whole(self, key: str, most_bytes: int) -> bytes | None:
        """Give an object of at most so many bytes and keep nothing of it here; None for a larger one.

        Raises `Refused` when it is gone or may not be read; `PlaceError` when the bucket answers no more.
        """
        found = self.head(key)
        if found.size_bytes > most_bytes:
            return None
        return self._span(found, (0, found.size_bytes)) if found.size_bytes else b""

    def _body(self, get: Callable[[], Any]) -> tuple[Any, bytes]:
        """Ask for an object and its bytes; again where they end early, which the client's own tries do not mend."""

        def got() -> tuple[Any, bytes]:
            for left in reversed(range(_BODY_TRIES)):
                given = get()
                begin, end = given.range
                with nullcontext() if not left else suppress(Exception):
                    data = bytes(given.bytes())
                    if len(data) == end - begin:
                        return given, data
            raise ConnectionError

        return self._asked(got)

    def _keep(self, at: tuple[str, str, int], data: bytes) -> None:
        self._blocks[at] = data
        self._held_bytes += len(data)
        while self._held_bytes > _CACHE_BYTES and len(self._blocks) > 1:
            (key, _, index), dropped = self._blocks.popitem(last=False)
            self._held_bytes -= len(dropped)
            if index == 0:
                self._objects.pop(key, None)

    def _asked(self, ask: Callable[[], T]) -> T:
        try:
            answer = ask()
        except (KeyboardInterrupt, SystemExit, ForensicsError):
            raise
        except BaseException as error:  # noqa: BLE001 - a panic of the client is no Exception
            self._refuse(refusal_of(error, self.scheme))
        self._silent = 0
        return answer

    def _refuse(self, refusal: Refusal) -> NoReturn:
        self._silent += refusal.silent
        if self._silent >= _MOST_SILENT:
            raise PlaceError(self.name, OSError(refusal.words), help=refusal.help)
        raise Refused(refusal)

    @property
    def _module(self) -> Any:  # noqa: ANN401 - an optional package
        if self._obstore is None:
            self._obstore = optional("obstore", "obstore")
        return self._obstore

    @property
    def _bucket(self) -> Any:  # noqa: ANN401 - same
        if self._store is None:
            wait = {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=3), "base": 2}
            tries = {"max_retries": _TRIES - 1, "retry_timeout": timedelta(seconds=_RETRY_S), "backoff": wait}
            # no option of the client: they would replace the environment's
            self._store = optional("obstore.store", "obstore").from_url(self.name, retry_config=tries)
        return self._store


def _object(meta: Any) -> Object:  # noqa: ANN401 - a row of an optional package
    when: datetime = meta["last_modified"]
    return Object(meta["path"], meta["size"], int(when.timestamp()) * 1_000_000_000, meta["e_tag"] or "")
