"""Requests to the store: each on a connection that has proven itself, each sent once.

Every failure becomes a `Fault` whose kind says whether the request may have been executed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from kafkaform.core.errors import OtherSystem
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.secret import Secret

Answer = dict[str, Any]
"""A JSON object as the store sends it."""

CODES: Mapping[str, tuple[FaultClass, str]] = {
    "exists": (FaultClass.CONVERGED, "plan again; --adopt takes the file over"),
    "missing": (FaultClass.CONVERGED, "plan again"),
    "replaced": (FaultClass.CONVERGED, "plan again and look at the new file"),
    "forbidden": (FaultClass.PERMISSION, "ask the store's administrator for this prefix"),
    "invalid": (FaultClass.DEFINITE, "correct the configuration"),
    "dangling": (FaultClass.DEFINITE, "write target = textstore_file.NAME.name, which orders both"),
    "in_use": (FaultClass.DEFINITE, "remove the link first"),
}
"""Code of one operation -> what it says about the effect, and what to do."""
UNKNOWN_CODE = (FaultClass.AMBIGUOUS, "update kafkaform-textstore: it does not know this code")

STATUSES: Mapping[int, tuple[FaultClass, str]] = {
    401: (FaultClass.PERMISSION, "check the token"),
    404: (FaultClass.DEFINITE, "check url: this is no text store"),
    409: (FaultClass.NOT_APPLIED, "run the same command again"),
    413: (FaultClass.DEFINITE, "report this as a bug in kafkaform-textstore"),
}
"""HTTP status of a whole request -> the same. Any other one may come after the effect."""


class RequestFailed(Exception):
    """A request that got no useful answer."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def item_fault(answer: Answer) -> Fault | None:
    """Why the store refused one operation, or None."""
    code = answer["code"]
    if code == "ok":
        return None
    kind, advice = CODES.get(code, UNKNOWN_CODE)
    return Fault(code.upper(), str(answer.get("message") or code), kind, advice=advice)


@dataclass(slots=True)
class Client:
    """timeout: seconds for one request; store_id: whom every connection must lead to, once it is
    known; stranger: why nothing is sent any more."""

    url: str
    token: Secret
    timeout: float
    store_id: str = ""
    closed: bool = False
    stranger: OtherSystem | None = None

    def describe(self) -> Answer:
        """What the store says about itself and us. Raises RequestFailed, OtherSystem."""
        with self._connection() as (_, description):
            return description

    def page(self, kind: str, after: str, *, full: bool) -> Answer:
        """One page of a listing. Raises RequestFailed, OtherSystem."""
        query = urlencode({"kind": kind, "after": after, "full": int(full)})
        with self._connection() as (connection, _):
            return self._exchange(connection, "GET", f"/list?{query}")

    def read(self, kind: str, names: Sequence[str]) -> list[Answer]:
        """One answer for each name. Raises RequestFailed, OtherSystem."""
        with self._connection() as (connection, _):
            body = {"kind": kind, "names": list(names)}
            return self._answers(connection, "/read", body, len(names))

    def write(self, operations: Sequence[Answer], *, validate_only: bool) -> list[Answer]:
        """One answer for each operation, sent once. Raises RequestFailed, OtherSystem."""
        body = {
            "operations": list(operations),
            "validate_only": validate_only,
            "expires": time.time() + self.timeout,
        }
        with self._connection() as (connection, _):
            answers = self._answers(connection, "/write", body, len(operations))
            try:
                self._identify(connection)
            except RequestFailed as failure:
                # Who gave these answers is not known, so neither is what they are worth.
                raise self._failure("NO_PROOF", failure, FaultClass.AMBIGUOUS) from None
            return answers

    @contextmanager
    def _connection(self) -> Iterator[tuple[HTTPConnection, Answer]]:
        """A new connection, and what the store said on it first."""
        if self.stranger is not None:
            raise self.stranger
        if self.closed:
            raise RequestFailed(Fault("CLOSED", "the session is closed", FaultClass.NOT_APPLIED))
        place = urlsplit(self.url)
        secure = place.scheme == "https"
        connect = HTTPSConnection if secure else HTTPConnection
        connection = connect(place.hostname or "", place.port, timeout=self.timeout)
        try:
            description = self._before_sending(connection)
            yield connection, description
        finally:
            connection.close()

    def _before_sending(self, connection: HTTPConnection) -> Answer:
        """A failure here is none of the request that was to follow."""
        try:
            connection.connect()
        except OSError as error:
            raise self._failure("UNREACHABLE", error, FaultClass.NOT_APPLIED) from None
        try:
            return self._identify(connection)
        except RequestFailed as failure:
            if failure.fault.kind is not FaultClass.AMBIGUOUS:
                raise
            raise self._failure("NOT_SENT", failure, FaultClass.NOT_APPLIED) from None

    def _identify(self, connection: HTTPConnection) -> Answer:
        """Ask who is there. Raises OtherSystem, now and for ever, if it is another store."""
        description = self._exchange(connection, "GET", "/store")
        if self.store_id and description["id"] != self.store_id:
            self.stranger = OtherSystem(
                f"{self.url} is store {description['id']} now, and was {self.store_id} before",
                "Find out what leads to two stores there, then run the same command again.",
            )
            raise self.stranger
        return description

    def _answers(
        self, connection: HTTPConnection, path: str, body: Answer, count: int
    ) -> list[Answer]:
        answers = self._exchange(connection, "POST", path, body).get("answers")
        if not isinstance(answers, list) or len(answers) != count:
            cause = ValueError(f"the answer to {path} does not have {count} parts")
            raise self._failure("NO_ANSWER", cause, FaultClass.AMBIGUOUS)
        return answers

    def _exchange(
        self, connection: HTTPConnection, method: str, path: str, body: Answer | None = None
    ) -> Answer:
        """Send once and read the answer. Without an answer nobody knows what happened."""
        headers = {"Authorization": f"Bearer {self.token.reveal()}"}
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = dict(json.loads(response.read()))
        except (OSError, HTTPException, ValueError, TypeError) as error:
            raise self._failure("NO_ANSWER", error, FaultClass.AMBIGUOUS) from None
        if response.status != 200:
            kind, advice = STATUSES.get(
                response.status, (FaultClass.AMBIGUOUS, "look at the store")
            )
            message = str(answer.get("message", response.reason))
            code = f"HTTP_{response.status}"
            raise RequestFailed(Fault(code, message, kind, self.url, advice))
        return answer

    def _failure(self, code: str, cause: Exception, kind: FaultClass) -> RequestFailed:
        message = str(cause) or type(cause).__name__
        advice = "check url and whether the store runs"
        return RequestFailed(Fault(code, message, kind, self.url, advice))
