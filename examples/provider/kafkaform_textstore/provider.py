"""The provider: its types, its settings, and the door to a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from kafkaform.core.change import Change
from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Depth, Facts
from kafkaform.core.rule import RuleBook
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, ObjectSchema, make_schema, map_of
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import Words
from kafkaform.provider.contract import OptionalParts, ResourceType, Secrets, Session

from . import file, link, rules
from .client import Client, RequestFailed
from .session import WORDS, StoreFacts, TextstoreSession

CONFIG = make_schema(
    "A store of text files.",
    AttributeSchema("url", STRING, "Where the store is, `https://HOST:PORT`.", required=True),
    AttributeSchema(
        "token", STRING, "Who we are, such as secret_env(…).", required=True, secret=True
    ),
    AttributeSchema(
        "timeout",
        NUMBER,
        "Seconds to wait for an answer, after which the store drops a request.",
        default=10,
        policy=True,
    ),
)

DATA = make_schema(
    "A file that something else manages.",
    AttributeSchema("name", STRING, "Name of the file.", required=True),
    AttributeSchema("content", STRING, "The text.", computed=True),
    AttributeSchema("headers", map_of(STRING), "The headers of its own.", computed=True),
    AttributeSchema("uid", STRING, "What the store calls this very file.", computed=True),
)

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class TextstoreProvider(OptionalParts):
    """See `kafkaform.provider.contract.Provider`."""

    name: str = "textstore"

    @property
    def words(self) -> Words:
        return WORDS

    @property
    def config(self) -> ObjectSchema:
        return CONFIG

    @property
    def types(self) -> Mapping[str, ResourceType]:
        return {kind.name: kind for kind in (file.TYPE, link.TYPE)}

    @property
    def commanded(self) -> Mapping[str, ResourceType]:
        return {}

    @property
    def data(self) -> Mapping[str, ObjectSchema]:
        return {file.KIND: DATA}

    def check(self, config: FrozenMap) -> Sequence[tuple[str, Diagnostic]]:
        return [("url", fault) for fault in _find_url_faults(str(config["url"]))]

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> Session:
        timeout = config.get("timeout") or 10
        client = Client(config["url"], secrets[str(config["token"])], float(timeout))
        try:
            description = client.describe()
        except RequestFailed as failure:
            client.close()
            fault = failure.fault
            raise ConnectError(f"{client.url}: {fault.message}", fault.advice) from None
        client.store_id = description["id"]
        facts = Facts(
            description["id"],
            nodes=(urlsplit(client.url).netloc,),
            principal=description["user"],
            values=StoreFacts(default_headers=FrozenMap(description["default_headers"])),
            operation_timeout=float(timeout),
        )
        return TextstoreSession(instance, client, facts)

    def load_rules(self) -> RuleBook:
        return rules.BOOK

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return {link.KIND: Depth.FULL} if any(map(rules.deletes_file, changes)) else {}


def _find_url_faults(url: str) -> Iterator[Diagnostic]:
    place = urlsplit(url)
    if place.scheme not in ("http", "https") or not place.hostname:
        yield Diagnostic(Severity.ERROR, f"{url} is no address", advice="Write https://HOST:PORT.")
    elif place.scheme == "http" and place.hostname not in LOOPBACK:
        yield Diagnostic(
            Severity.ERROR,
            "The token would travel in the clear",
            advice="Write https://, or run the store on this computer.",
        )


PROVIDER = TextstoreProvider()
