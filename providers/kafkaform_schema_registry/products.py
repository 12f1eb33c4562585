"""Which registry answers: its id, and what sets it apart from Confluent's."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Fault
from kafkaform.provider.http.exchange import ANSWER_LOST, NOT_SENT, Call, HttpAnswer

from .kinds.facts import RegistryFacts
from .requests import (
    IDENTIFY,
    BadAnswer,
    RegistryClient,
    judge_refusal,
    lacks_endpoint,
    make_bad_answer,
    read_registry_id,
    read_setting,
    read_word,
)

APICURIO_PATH = "/apis/ccompat/"
"""In the url of Apicurio's API for clients of Confluent's registry."""
WITHOUT_ID = (401, 403, 404, 405)
"""What registries that have no id, or show it to nobody, answer to the question for it."""
APICURIO_LIMIT = 1000
"""Apicurio lists so many subjects and says nothing about the others (2.6.13)."""


class Product(Struct, frozen=True):
    """What a registry has said about itself."""

    id: str | None
    """None if it does not say."""
    hides_id: bool
    """It may have an id that this user must not see."""
    modes: bool
    """It has modes."""
    apicurio: bool

    @property
    def profile(self) -> str:
        """What a plan says about it."""
        if self.apicurio:
            return "Apicurio: no modes, and no level NONE for one subject"
        return "" if self.modes else "no modes"

    def make_facts(self, *, login: bool, hard_delete: bool) -> RegistryFacts:
        """The facts of a session. login: it logs in; hard_delete: of the provider block."""
        return RegistryFacts(
            modes=self.modes,
            # PUT NONE removes the level of the subject, so that the registry's own takes effect.
            subject_none=not self.apicurio,
            listing_limit=APICURIO_LIMIT if self.apicurio else None,
            login=login,
            hard_delete=hard_delete,
        )


def identify_product(client: RegistryClient, url: str) -> Product:
    """Ask a registry what it is. Raises ConnectError with the address, the cause and advice."""
    level, mode, named = client.ask_all(
        [read_setting("config", None), read_setting("mode", None), IDENTIFY]
    )
    _require_level(level, url)
    # Without an answer nobody knows whether it has an id, and the state is bound to one.
    for call, answer in ((read_setting("mode", None), mode), (IDENTIFY, named)):
        if isinstance(answer, Fault):
            raise _make_error(url, answer)
        if answer.status >= 500 or answer.status in (407, 409, 429) or 300 <= answer.status < 400:
            raise _make_refusal(url, answer, call)
    assert isinstance(mode, HttpAnswer)
    assert isinstance(named, HttpAnswer)
    if not named.succeeded and named.status not in WITHOUT_ID:
        raise _make_refusal(url, named, IDENTIFY)
    apicurio = APICURIO_PATH in f"{urlsplit(url).path}/" or _is_apicurio(mode)
    return Product(
        id=read_registry_id(named.body) if named.succeeded else None,
        hides_id=named.status in (401, 403) and not apicurio,
        modes=not (apicurio or lacks_endpoint(mode)),
        apicurio=apicurio,
    )


def _is_apicurio(mode: HttpAnswer) -> bool:
    """Behind a proxy it can have any path. Its refusal of modes is its own."""
    body = mode.body if isinstance(mode.body, dict) else {}
    return lacks_endpoint(mode) and body.get("message") == "Operation not supported."


def _require_level(answer: HttpAnswer | Fault, url: str) -> None:
    """The one answer that every registry has, and nothing else."""
    call = read_setting("config", None)
    if isinstance(answer, Fault):
        raise _make_error(url, answer)
    # A user without the right to see the registry's level can have the right to see subjects.
    if answer.status == 403:
        return
    if not answer.succeeded:
        raise _make_refusal(url, answer, call)
    try:
        read_word(answer.body, "compatibilityLevel", "compatibility")
    except BadAnswer as error:
        raise _make_error(url, make_bad_answer(error, call)) from None


def _make_error(url: str, fault: Fault) -> ConnectError:
    answered = fault.code not in (NOT_SENT, ANSWER_LOST)
    code = f" ({fault.code})" if answered else ""
    return ConnectError(f"{url}: {fault.message}{code}", fault.advice)


def _make_refusal(url: str, answer: HttpAnswer, call: Call) -> ConnectError:
    fault = judge_refusal(answer, call)
    status = f"HTTP {answer.status}"
    reason = fault.message if status in fault.message else f"{status}: {fault.message}"
    return ConnectError(f"{url}: {reason} ({fault.code})", fault.advice)


def name_place(url: str) -> str:
    """Host, port and path of an address: what identifies a registry that has no id."""
    address = urlsplit(url)
    port = address.port or (443 if address.scheme == "https" else 80)
    return f"{(address.hostname or '').lower()}:{port}{address.path.rstrip('/')}"


PROOF_CALL: Call = IDENTIFY
"""What a connection is asked for before anything else, if the registry has an id."""
