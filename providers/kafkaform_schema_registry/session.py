"""A session with one registry, real or simulated: which product answers, its id, and what sets it
apart from Confluent's; and the contract."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from kafkaform.core.change import (
    Action,
    Batch,
    Change,
    Impact,
    Outcome,
    OutcomeStatus,
    Step,
    Verdict,
)
from kafkaform.core.errors import ConnectError, OtherSystem
from kafkaform.core.resource import (
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Identity,
    Reading,
    Sweep,
)
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets
from kafkaform.provider.http.client import HttpClient, Proof
from kafkaform.provider.http.exchange import (
    ANSWER_LOST,
    NOT_SENT,
    Call,
    HttpAnswer,
    read_error_code,
)
from kafkaform.provider.http.settings import BasicLogin, HttpSettings, list_urls, read_settings

from . import consultation, data_sources, reads, sends
from .kinds import schema
from .kinds.registry import RegistryFacts, parse_listing
from .provider_block import WORDS
from .requests import (
    IDENTIFY,
    BadAnswer,
    RegistryClient,
    RegistryContext,
    judge_refusal,
    lacks_endpoint,
    make_bad_answer,
    read_registry_id,
    read_setting,
    read_word,
)

if TYPE_CHECKING:
    from .requests import RegistryClient

APICURIO_PATH = "/apis/ccompat/"
"""In the url of Apicurio's API for clients of Confluent's registry."""
WITHOUT_ID = (401, 403, 404, 405)
"""What registries that have no id, or show it to nobody, answer to the question for it."""
APICURIO_LIMIT = 1000
"""Apicurio lists so many subjects and says nothing about the others (2.6.13)."""
NOBODY = "kafkaform-nobody"
"""A subject that does not exist. What a registry says about its mode tells whether subjects have
modes of their own."""
NO_SUBJECT = 40401
"""Karapace says so where others say that the subject has no mode (40409)."""


class Product(Struct, frozen=True):
    """What a registry has said about itself."""

    id: str | None
    """None if it does not say."""
    hides_id: bool
    """It may have an id that this user must not see."""
    modes: bool
    """It has modes that can be set and read."""
    apicurio: bool

    @property
    def contracts(self) -> bool:
        """It is Confluent's: the others keep no metadata and rules, or only some of them."""
        return self.id is not None or self.hides_id

    @property
    def properties(self) -> bool:
        """It is Confluent's, or Redpanda's, which alone has modes of subjects and no id."""
        return self.contracts or self.modes

    @property
    def profile(self) -> str:
        """What a plan says about it."""
        if self.apicurio:
            return "Apicurio: no modes, and no level NONE for one subject"
        return "" if self.modes else "no modes that can be set"

    def make_facts(self, config: FrozenMap, *, login: bool) -> RegistryFacts:
        """The facts of a session. config: the provider block; login: the session logs in."""
        return RegistryFacts(
            modes=self.modes,
            subject_none=not self.apicurio,
            listing_limit=APICURIO_LIMIT if self.apicurio else None,
            login=login,
            hard_delete=config.get("hard_delete") is True,
            deleted_refer=self.apicurio,
            # 2.6.13 parses the schema without its references (error 42201).
            checks_references=not self.apicurio,
            all_versions=config.get("all_versions") is True,
            contracts=self.contracts,
            properties=self.properties,
        )


def identify_product(client: RegistryClient, url: str) -> Product:
    """Ask a registry what it is. Raises ConnectError with the address, the cause and advice."""
    calls = [
        read_setting("config", None),
        read_setting("mode", None),
        read_setting("mode", NOBODY),
        IDENTIFY,
    ]
    level, mode, mode_of_nobody, named = client.ask_all(calls)
    _require_level(level, url)
    # Without an answer nobody knows whether it has an id, and the state is bound to one.
    for call, answer in zip(calls[1:], (mode, mode_of_nobody, named), strict=True):
        if isinstance(answer, Fault):
            raise _make_error(url, answer)
        if answer.status >= 500 or answer.status in (407, 409, 429) or 300 <= answer.status < 400:
            raise _make_refusal(url, answer, call)
    assert isinstance(mode, HttpAnswer)
    assert isinstance(mode_of_nobody, HttpAnswer)
    assert isinstance(named, HttpAnswer)
    if not named.succeeded and named.status not in WITHOUT_ID:
        raise _make_refusal(url, named, IDENTIFY)
    in_path = APICURIO_PATH in f"{urlsplit(url).path}/"
    # Apicurio 3 gives every subject the mode of the registry.
    apicurio = in_path or _is_apicurio(mode) or mode_of_nobody.succeeded
    # Confluent's registry said the same before 7.0, and it has an id.
    is_karapace = named.status in (404, 405) and read_error_code(mode_of_nobody) == NO_SUBJECT
    return Product(
        id=read_registry_id(named.body) if named.succeeded else None,
        hides_id=named.status in (401, 403) and not apicurio,
        modes=not (apicurio or is_karapace or lacks_endpoint(mode)),
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


class RegistrySession:
    """See `kafkaform.provider.contract.Session`."""

    words = WORDS

    def __init__(self, instance: str, client: RegistryClient, facts: Facts) -> None:
        self._context = RegistryContext(instance, client, facts)

    @property
    def context(self) -> RegistryContext:
        """What requests of this session need."""
        return self._context

    @property
    def facts(self) -> Facts:
        return self._context.facts

    def live_nodes(self) -> Sequence[str]:
        """The registry as a whole: which of its servers answers is not known."""
        return self.facts.nodes

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        if parse_listing(kind)[1]:
            return consultation.answer_listing(self._context, kind, depth)
        return reads.list_objects(self._context, kind, depth)

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        if at is not None and at not in self.facts.nodes:
            fault = Fault("NO_SUCH_NODE", f"there is no registry {at}", FaultClass.NOT_APPLIED)
            return {identity: Failed(identity, fault) for identity in ids}
        groups: dict[str, list[Identity]] = defaultdict(list)
        for identity in dict.fromkeys(ids):
            groups[identity.kind].append(identity)
        readings: dict[Identity, Reading] = {}
        for kind, group in groups.items():
            readings |= reads.read_objects(self._context, kind, group)
        return readings

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        return data_sources.answer_query(self._context, data, arguments)

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        doomed = [
            change
            for change in changes
            if change.action is Action.DELETE and change.identity.kind == schema.KIND
        ]
        return consultation.measure_deletions(self._context, [change.identity for change in doomed])

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        """Registries do not say what a user may do, so nothing is known before the dry run."""
        return ()

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        findings = sends.send_steps(self._context, batch.request.name, batch.steps, dry=True)
        return [Verdict(step.id, step.evidence, findings[step.id]) for step in batch.steps]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        name, steps = batch.request.name, batch.steps
        outcomes = sends.send_steps(self._context, name, steps, dry=False, secrets=secrets)
        return [_make_outcome(step, outcomes[step.id]) for step in batch.steps]

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        """Nothing takes long here, so nobody has a ticket of this provider."""
        return [_report_no_task(ticket) for ticket in (*tickets, *owed)]

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        return [_report_no_task(ticket) for ticket in tickets]

    def prove(self) -> None:
        self._context.client.prove()

    def close(self) -> None:
        self._context.client.close()


def _make_outcome(step: Step, fault: Fault | None) -> Outcome:
    if fault is None:
        return Outcome(step.id, OutcomeStatus.APPLIED)
    unclear = fault.kind is FaultClass.AMBIGUOUS
    return Outcome(step.id, OutcomeStatus.UNKNOWN if unclear else OutcomeStatus.FAILED, fault)


def _report_no_task(ticket: str) -> Outcome:
    fault = Fault("NO_SUCH_TASK", f"there is no task {ticket}", FaultClass.DEFINITE)
    return Outcome(ticket, OutcomeStatus.FAILED, fault)


def open_session(instance: str, config: FrozenMap, secrets: Secrets) -> RegistrySession:
    """Connect and find out which registry answers. Raises ConnectError, ConfigurationError,
    OtherSystem."""
    settings = read_settings(instance, config, secrets)
    url = list_urls(config)[0]
    first = HttpClient(settings)
    try:
        product = identify_product(first, url)
    finally:
        first.close()
    _check_id(url, product, config.get("registry_id"))
    proof = None if product.id is None else Proof(PROOF_CALL, _make_check(url, product.id))
    facts = make_facts(config, product, url, settings)
    return RegistrySession(instance, HttpClient(settings, proof), facts)


def make_facts(config: FrozenMap, product: Product, url: str, settings: HttpSettings) -> Facts:
    """The facts of a session. url: the first address."""
    node = name_place(url)
    path = node.partition("/")[2]
    # One of Confluent's registries has several sets of subjects, under /contexts/NAME.
    named = f"{product.id}/{path}" if product.id and path else product.id
    login = settings.auth
    own_facts = product.make_facts(
        config,
        login=login is not None or settings.certificate is not None or bool(settings.headers),
    )
    return Facts(
        named or config.get("registry_id") or node,
        nodes=(node,),
        principal=login.username if isinstance(login, BasicLogin) else None,
        values=own_facts,
        profile=product.profile,
        operation_timeout=settings.timeout,
        protect=config.get("protect_schemas") is not False,
    )


def _check_id(url: str, product: Product, expected: str | None) -> None:
    """Raises ConnectError if this registry is, or could be, another one than expected."""
    if product.hides_id and expected is None:
        # Somebody else sees the id, and the state is bound to it.
        raise ConnectError(
            f"{url}: this user must not see which registry answers (GET {PROOF_CALL.path})",
            "Grant that right, or write the id that other users see into registry_id.",
        )
    if expected is not None and product.id not in (None, expected):
        raise ConnectError(
            f"{url}: the registry calls itself {product.id}, and registry_id is {expected}",
            "Check url, or remove registry_id: this registry has its own id.",
        )


def _make_check(url: str, expected: str) -> Callable[[HttpAnswer], None]:
    def check(answer: HttpAnswer) -> None:
        registry_id = read_registry_id(answer.body)
        if registry_id != expected:
            name = registry_id or "without an id"
            raise OtherSystem(
                f"{url} is the registry {name} now, and was {expected} before",
                "Find out what leads to two registries there, then run the same command again.",
            )

    return check
