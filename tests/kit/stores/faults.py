"""How S3-like stores misbehave: a table of single faults, each for one conditional write."""

from __future__ import annotations

from collections.abc import Mapping

from .s3 import Answer, Bucket, Fault, Request, refusal

WAIT = 0.5
"""Seconds after which an answer comes too late; clients of these tests wait less."""


def instead(status: int, code: str) -> Fault:
    """The store answers so and does nothing."""
    return lambda bucket, request: refusal(status, code)


def after(status: int, code: str) -> Fault:
    """The store does it, and answers so all the same."""

    def fault(bucket: Bucket, request: Request) -> Answer:
        bucket.serve(request)
        return refusal(status, code)

    return fault


def reset_before(bucket: Bucket, request: Request) -> Answer:
    """The connection breaks before the store has done anything."""
    return Answer(0, breaks=True)


def reset_after(bucket: Bucket, request: Request) -> Answer:
    """The store does it, and the connection breaks before the answer."""
    bucket.serve(request)
    return Answer(0, breaks=True)


def late(bucket: Bucket, request: Request) -> Answer:
    """The store does it, and answers when nobody waits any more."""
    answer = bucket.serve(request)
    answer.wait = WAIT
    return answer


def late_and_undone(bucket: Bucket, request: Request) -> Answer:
    """The store does nothing, and says so when nobody waits any more."""
    return Answer(500, wait=WAIT)


def cut(bucket: Bucket, request: Request) -> Answer:
    """The connection breaks in the middle of what is read."""
    answer = bucket.serve(request)
    answer.cut = True
    return answer


def nameless(bucket: Bucket, request: Request) -> Answer:
    """The store does it, and leaves the ETag out of the answer."""
    return Answer(bucket.serve(request).status)


PASSING: Mapping[str, Fault] = {
    "409 in place of it": instead(409, "ConditionalRequestConflict"),
    "409 after it": after(409, "ConditionalRequestConflict"),
    "412 in place of it": instead(412, "PreconditionFailed"),
    "412 after it": after(412, "PreconditionFailed"),
    "304 in place of it": instead(304, "NotModified"),
    "304 after it": after(304, "NotModified"),
    "500 in place of it": instead(500, "InternalError"),
    "500 after it": after(500, "InternalError"),
    "503 slow down": instead(503, "SlowDown"),
    "429 in place of it": instead(429, "TooManyRequests"),
    "reset before it": reset_before,
    "reset after it": reset_after,
    "time-out before it": late_and_undone,
    "time-out after it": late,
    "no ETag in the answer": nameless,
}
"""Faults of one request that kafkaform gets over, whether or not the write had happened."""


# ── stores that are not fit ─────────────────────────────────────────────────────────────


def without(*conditions: str) -> Fault:
    """A store that knows nothing of these headers."""

    def fault(bucket: Bucket, request: Request) -> None:
        for condition in conditions:
            request.headers.pop(condition, None)

    return fault


def weak(bucket: Bucket, request: Request) -> Answer | None:
    """A store, or a proxy before it, that hands out weak ETags, which match nothing."""
    if request.method != "GET" or not request.key:
        return None
    answer = bucket.serve(request)
    if "ETag" in answer.headers:
        answer.headers["ETag"] = f"W/{answer.headers['ETag']}"
    return answer


def blind(bucket: Bucket, request: Request) -> Answer | None:
    """A store whose listings are always empty: as if they lagged behind for ever."""
    if request.key:
        return None
    return Bucket().serve(request)


def forgetful(bucket: Bucket, request: Request) -> Answer | None:
    """A store whose reads never see what was written."""
    if request.method == "GET" and request.key:
        return refusal(404, "NoSuchKey")
    return None


UNFIT: Mapping[str, tuple[Fault, str]] = {
    "ignores If-None-Match": (without("if-none-match"), "If-None-Match"),
    "ignores If-Match": (without("if-match"), "If-Match"),
    "ignores every condition": (without("if-none-match", "if-match"), "If-None-Match"),
    "weak ETags": (weak, "refused a write although its condition is met"),
    "listings lag": (blind, "listing"),
    "reads lag": (forgetful, "cannot be read"),
}
"""Stores that `init` refuses, each with what the refusal names."""
