"""An S3 server of the standard library for tests: what forensics asks of a bucket, and faults on request."""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_right
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

NAME = "bucket"
KEY_ID, SECRET = "AKIA" + "FAKEFAKEFAKEFAKE", "wJalrXUtnFEMI" + "K7MDENGbPxRfiCYEXAMPLEKEY"
_PAGE = 1_000
_TIME = "2026-03-01T12:00:00.000Z"


@dataclass
class Bucket:
    """Objects by key, and the requests so far.

    Every `fail_each`-th is answered with `fail_with`, the body of every `cut_each`-th ends after its first half, and
    keys that hold `forbidden` may not be read.
    """

    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    requests: list[str] = field(default_factory=list[str])
    fail_each: int = 0
    fail_with: int = 503
    cut_each: int = 0
    forbidden: str = ""
    url: str = ""

    def put_folder(self, folder: Path, prefix: str) -> None:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            self.objects[f"{prefix}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()

    def asked(self, method: str, contains: str = "") -> list[str]:
        return [one for one in self.requests if one.startswith(method) and contains in one]

    @property
    def env(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket
    lock: threading.Lock

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, code: int, body: bytes = b"", size: str = "", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", size or str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        cut_each = self.bucket.cut_each
        if cut_each and len(self.bucket.requests) % cut_each == 0:
            body, self.close_connection = body[: len(body) // 2], True
        self.wfile.write(body)

    def _error(self, code: int, word: str) -> None:
        # a real server answers with what it was sent: the key's id
        body = (
            f"<Error><Code>{word}</Code><AWSAccessKeyId>{KEY_ID}</AWSAccessKeyId><StringToSign>x</StringToSign></Error>"
        )
        self._answer(code, body.encode(), Content_Type="application/xml")

    def _begun(self) -> str | None:
        """The key that is asked for; None where the request was refused on purpose."""
        with self.lock:
            self.bucket.requests.append(f"{self.command} {self.path} {self.headers.get('Range', '')}")
            number = len(self.bucket.requests)
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        if self.bucket.fail_each and number % self.bucket.fail_each == 0:
            self._error(self.bucket.fail_with, "SlowDown")
            return None
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        name, _, key = parts.path.removeprefix("/").partition("/")
        if name != NAME:
            self._error(404, "NoSuchBucket")
            return None
        return unquote(key)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        key = self._begun()
        if key is None:
            return
        if not key:
            self._list()
        elif self.bucket.forbidden and self.bucket.forbidden in key:
            self._error(403, "AccessDenied")
        elif key not in self.bucket.objects:
            self._error(404, "NoSuchKey")
        else:
            self._give(self.bucket.objects[key])

    def do_PUT(self) -> None:
        key = self._begun()
        if key is None:
            return
        with self.lock:
            taken = self.headers.get("If-None-Match") == "*" and key in self.bucket.objects
            if not taken:
                self.bucket.objects[key] = self.body
        if taken:
            self._error(412, "PreconditionFailed")
        else:
            self._answer(200, ETag=_tag(self.body))

    def _give(self, data: bytes) -> None:
        tag = _tag(data)
        if self.headers.get("If-Match") not in (None, tag):
            self._error(412, "PreconditionFailed")
            return
        headers = {"ETag": tag, "Last_Modified": "Sun, 01 Mar 2026 12:00:00 GMT"}
        asked = self.headers.get("Range")
        if self.command == "HEAD":
            self._answer(200, b"", size=str(len(data)), **headers)
        elif asked is None:
            self._answer(200, data, **headers)
        else:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last or len(data)), len(data) - 1)
            if begin >= len(data):
                self._error(416, "InvalidRange")
                return
            self._answer(206, data[begin : end + 1], Content_Range=f"bytes {begin}-{end}/{len(data)}", **headers)

    def _list(self) -> None:
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        after = self.query.get("continuation-token") or self.query.get("start-after") or ""
        keys = sorted(self.bucket.objects)
        contents, prefixes, last = [], [], ""
        for key in keys[bisect_right(keys, max(after, prefix and prefix[:-1])) :]:
            if not key.startswith(prefix):
                if key > prefix:
                    break
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folder = prefix + rest.split(delimiter)[0] + delimiter
                if folder not in prefixes:
                    prefixes.append(folder)
                continue
            contents.append(key)
            last = key
            if len(contents) == _PAGE:
                break
        is_cut = len(contents) == _PAGE and last != keys[-1]
        self._answer(200, "".join(self._page(contents, prefixes, last if is_cut else "")).encode())

    def _page(self, keys: list[str], prefixes: list[str], token: str) -> Iterator[str]:
        yield '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
        yield f"<Name>{NAME}</Name><IsTruncated>{str(bool(token)).lower()}</IsTruncated>"
        if token:
            yield f"<NextContinuationToken>{escape(token)}</NextContinuationToken>"
        for key in keys:
            data = self.bucket.objects[key]
            yield f"<Contents><Key>{self._written(key)}</Key><LastModified>{_TIME}</LastModified>"
            yield f"<ETag>{escape(_tag(data))}</ETag><Size>{len(data)}</Size></Contents>"
        for folder in prefixes:
            yield f"<CommonPrefixes><Prefix>{self._written(folder)}</Prefix></CommonPrefixes>"
        yield "</ListBucketResult>"

    def _written(self, key: str) -> str:
        return quote(key) if self.query.get("encoding-type") == "url" else escape(key)


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"' if data else '"d41d8cd98f00b204e9800998ecf8427e"'


@contextmanager
def served() -> Generator[Bucket]:
    """Serve an empty bucket on the loopback interface."""
    bucket = Bucket()
    handler = type("Handler", (_Handler,), {"bucket": bucket, "lock": threading.Lock()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        bucket.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield bucket
        finally:
            server.shutdown()
            thread.join()
