"""Turns a wire call that did not work out into a fault, in one place for reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafkaform.core.resource import Fault

from ..protocol import faults
from ..wire.client import AnswerLost, NotSent, Unsupported

T = TypeVar("T")
UNSUPPORTED_VERSION = 35
_NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What an answer raises that can be read and lacks what it must have, such as a list."""


def attempt(api: str, call: Callable[[], T], broker: str | None = None) -> T | Fault:
    """What the call returns, or the fault that says whether its request can have worked."""
    where = broker or ""
    try:
        return call()
    except NotSent as error:
        return faults.not_sent_fault(api, str(error), where)
    except Unsupported as error:
        return faults.fault_of(api, UNSUPPORTED_VERSION, "", str(error), where)
    except AnswerLost as error:
        return faults.lost_answer_fault(api, str(error), where, timed_out=error.timed_out)
    except _NONSENSE as error:
        said = f"the answer makes no sense ({type(error).__name__}: {error})"
        return faults.lost_answer_fault(api, said, where)
