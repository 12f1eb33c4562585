"""Requests to the store: each on a connection that has proven itself, each write sent once.

Every failure becomes a `Fault` whose kind says whether the request may have been executed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafkaform.core.errors import OtherSystem
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.secret import Secret
from kafkaform.provider.http.client import HttpClient, Proof
from kafkaform.provider.http.exchange import (
    Call,
    CallFailed,
    ErrorTable,
    HttpAnswer,
    make_fault,
    make_transport_fault,
)
from kafkaform.provider.http.settings import BearerToken, HttpSettings

Reply = dict[str, Any]
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

STATUSES: ErrorTable = {
    (401, None): (FaultClass.PERMISSION, "check the token"),
    (404, None): (FaultClass.DEFINITE, "check url: this is no text store"),
    (409, None): (FaultClass.NOT_APPLIED, "run the same command again"),
    (413, None): (FaultClass.DEFINITE, "report this as a bug in kafkaform-textstore"),
}
"""HTTP status of a whole request, whatever its code -> the same."""


class RequestFailed(Exception):
    """A request that got no useful answer."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def item_fault(reply: Reply) -> Fault | None:
    """Why the store refused one operation, or None."""
    code = reply["code"]
    if code == "ok":
        return None
    kind, advice = CODES.get(code, UNKNOWN_CODE)
    return Fault(code.upper(), str(reply.get("message") or code), kind, advice=advice)


def _is_reply(part: Any) -> bool:
    """Whether this answers for one object."""
    return isinstance(part, dict) and isinstance(part.get("code"), str)


class Client:
    """Asks one store. timeout: seconds for one request; store_id: whom every connection must lead
    to, once it is known."""

    def __init__(self, url: str, token: Secret, timeout: float, store_id: str = "") -> None:
        self.url = url
        self.store_id = store_id
        self._timeout = timeout
        settings = HttpSettings((url,), timeout=timeout, auth=BearerToken(token))
        proof = Proof(Call("GET", "/store", reads=True), self._identify)
        self._http = HttpClient(settings, proof)

    def describe(self) -> Reply:
        """What the store says about itself and us. Raises RequestFailed, OtherSystem."""
        return self._ask(Call("GET", "/store", reads=True))

    def page(self, kind: str, after: str, *, full: bool) -> Reply:
        """One page of a listing. Raises RequestFailed, OtherSystem."""
        query = {"kind": kind, "after": after, "full": str(int(full))}
        return self._ask(Call("GET", "/list", query=query, reads=True))

    def read(self, kind: str, names: Sequence[str]) -> list[Reply]:
        """One reply for each name. Raises RequestFailed, OtherSystem."""
        body = {"kind": kind, "names": list(names)}
        return self._ask_each(Call("POST", "/read", body, reads=True), len(names))

    def write(self, operations: Sequence[Reply], *, validate_only: bool) -> list[Reply]:
        """One reply for each operation, sent once. Raises RequestFailed, OtherSystem."""
        body = {
            "operations": list(operations),
            "validate_only": validate_only,
            "expires": time.time() + self._timeout,
        }
        return self._ask_each(Call("POST", "/write", body), len(operations))

    def prove(self) -> None:
        """Ask on every open connection which store it leads to. Raises OtherSystem."""
        self._http.prove()

    def close(self) -> None:
        """Send nothing any more."""
        self._http.close()

    def _identify(self, answer: HttpAnswer) -> None:
        """The proof of a connection. Raises OtherSystem, and so does every later request."""
        found = answer.body.get("id") if isinstance(answer.body, dict) else None
        if found is None or self.store_id not in ("", found):
            raise OtherSystem(
                f"{self.url} is store {found} now, and was {self.store_id} before",
                "Find out what leads to two stores there, then run the same command again.",
            )

    def _ask(self, call: Call) -> Reply:
        try:
            answer = self._http.send(call)
        except CallFailed as failure:
            raise RequestFailed(make_transport_fault(failure)) from None
        if not answer.succeeded:
            raise RequestFailed(make_fault(answer, STATUSES, call))
        return dict(answer.body) if isinstance(answer.body, dict) else {}

    def _ask_each(self, call: Call, count: int) -> list[Reply]:
        replies = self._ask(call).get("answers")
        if not isinstance(replies, list) or list(map(_is_reply, replies)) != [True] * count:
            message = f"the answer to {call} does not have {count} parts"
            advice = "update kafkaform-textstore: the store answers in another way"
            raise RequestFailed(Fault("NO_ANSWER", message, FaultClass.AMBIGUOUS, "", advice))
        return replies
