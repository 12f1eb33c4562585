"""The S3 double, with what Hadoop asks beyond it: ranges, folders, copies, many deletes at once,
and bodies in chunks."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from ..stores.s3 import BUCKET, Answer, Bucket, Handler, Request, Server, refusal

JARS = Path(__file__).with_name("s3a.txt")
"""Hadoop's client of S3 and what it needs, pinned."""

XML = {"Content-Type": "application/xml"}
CHUNK = re.compile(rb"([0-9a-fA-F]+)[^\r\n]*\r\n")


class Wide(Bucket):
    """One bucket."""

    def serve(self, request: Request) -> Answer:
        if request.method == "POST":
            return self._delete_many(request)
        if request.method == "GET" and not request.key:
            return self._folders(request.query)
        if "x-amz-copy-source" in request.headers:
            return self._copy(request)
        answer = super().serve(request)
        wanted = request.headers.get("range")
        return _part(answer, wanted) if wanted and request.method == "GET" else answer

    def _delete_many(self, request: Request) -> Answer:
        if "delete" not in request.query:
            return refusal(501, "NotImplemented")
        for name in re.findall(r"<Key>(.*?)</Key>", request.body.decode(), re.DOTALL):
            super().serve(replace(request, method="DELETE", key=unescape(name)))
        return Answer(200, b"<DeleteResult></DeleteResult>", XML)

    def _copy(self, request: Request) -> Answer:
        name = unquote(request.headers["x-amz-copy-source"]).lstrip("/").removeprefix(f"{BUCKET}/")
        found = self.objects.get(name)
        if found is None:
            return refusal(404, "NoSuchKey")
        made = super().serve(replace(request, body=found.data))
        text = f"<CopyObjectResult><ETag>{escape(made.headers['ETag'])}</ETag></CopyObjectResult>"
        return Answer(200, text.encode(), XML)

    def _folders(self, query: dict[str, str]) -> Answer:
        prefix, mark = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        with self.mutex:
            found = {
                _up_to(name, prefix, mark): self.objects[name]
                for name in self.keys
                if name.startswith(prefix)
            }
        most = min(int(query.get("max-keys", self.page)), self.page)
        shown = sorted(name for name in found if name > after)
        more = len(shown) > most
        text = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            if mark and name.endswith(mark) and name != prefix
            else f"<Contents><Key>{escape(name)}</Key><LastModified>{_time(found[name].modified)}"
            f"</LastModified><ETag>{escape(found[name].etag)}</ETag>"
            f"<Size>{len(found[name].data)}</Size></Contents>"
            for name in shown[:most]
        )
        token = shown[:most][-1] if more else ""
        head = (
            f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><MaxKeys>{most}</MaxKeys>"
            f"<KeyCount>{len(shown[:most])}</KeyCount>"
            f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
        )
        more_of_it = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" * more
        body = f"<ListBucketResult>{head}{more_of_it}{text}</ListBucketResult>"
        return Answer(200, body.encode(), XML)


def _up_to(name: str, prefix: str, mark: str) -> str:
    """The name, or the folder below the prefix that it is in."""
    inside, found, _ = name[len(prefix) :].partition(mark) if mark else (name, "", "")
    return prefix + inside + found if found else name


def _part(answer: Answer, wanted: str) -> Answer:
    """RFC 9110, section 14: one range."""
    if answer.status != 200:
        return answer
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    size = len(answer.body)
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last), size - 1) if first and last else size - 1
    if start >= size:
        return refusal(416, "InvalidRange")
    about = {**answer.headers, "Content-Range": f"bytes {start}-{end}/{size}"}
    return Answer(206, answer.body[start : end + 1], about)


def _time(modified: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(modified))


def _unchunked(body: bytes) -> bytes:
    """What AWS's chunks hold; their signatures and sums are not looked at."""
    found, at = b"", 0
    while (head := CHUNK.match(body, at)) and (size := int(head[1], 16)):
        found += body[head.end() : head.end() + size]
        at = head.end() + size + 2
    return found


class WideHandler(Handler):
    """A name may end in a slash, and a question may have no value."""

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("x-amz-content-sha256", "").startswith("STREAMING-"):
            body = _unchunked(body)
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).removeprefix("/").partition("/")
        asked = parse_qs(parts.query, keep_blank_values=True)
        query = {name: values[0] for name, values in asked.items()}
        self._serve(bucket == BUCKET, Request(self.command, key, query, headers, body))

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = _any


@contextmanager
def serving(bucket: Wide) -> Iterator[str]:
    """The address while the server runs."""
    handler = type("Bound", (WideHandler,), {"bucket": bucket})
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
