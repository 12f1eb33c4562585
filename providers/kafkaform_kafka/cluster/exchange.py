"""Turn a failed request into a fault, in one place for reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafkaform.core.resource import Fault

from ..protocol import faults
from ..wire.client import RequestNotSent, RequestUnanswered, Unsupported

T = TypeVar("T")
UNSUPPORTED_VERSION = 35
# kafka-python decodes null where the protocol allows it, for example instead of a list. Code that
# expects a list then raises one of these.
_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What our code raises at an answer that can be decoded but makes no sense."""


def attempt(api: str, call: Callable[[], T], broker: str | None = None) -> T | Fault:
    """The result of the call, or the fault that says whether its request can have been executed."""
    # No use of the clients' own `retriable`: librdkafka says False for every admin error, also for
    # timeouts, and kafka-python says True for some whose request may have been executed.
    node = broker or ""
    try:
        return call()
    except RequestNotSent as error:
        return faults.not_sent_fault(api, str(error), node, throttled=error.throttled)
    except Unsupported as error:
        return faults.fault_of(api, UNSUPPORTED_VERSION, "", str(error), node)
    except RequestUnanswered as error:
        return faults.lost_answer_fault(api, str(error), node, timed_out=error.timed_out)
    except _NONSENSE as error:
        cause = f"the answer makes no sense ({type(error).__name__}: {error})"
        return faults.lost_answer_fault(api, cause, node)
