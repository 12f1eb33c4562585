"""Read a properties file of the Java client as a provider block. Who logs in is in sasl.mechanism,
the text of sasl.jaas.config (JAAS), and Amazon's login module and callback handlers
(aws-msk-iam-auth).

A property that changes who logs in, whom we trust or which code runs is obeyed or refused, and
never ignored. Only properties that tune the Java client are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field

from kafkaform.core.diagnostics import Severity, suggest
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef, Value

from .login_attributes import AWS_MECHANISM, KERBEROS_MODULE, KERBEROS_OPTIONS, find_jaas_faults
from .provider_block import MECHANISMS

_IAM = "software.amazon.msk.auth.iam"
_TOKEN_HANDLER = f"{_IAM}.IAMOAuthBearerLoginCallbackHandler"
_AWS_MODULE = f"{_IAM}.IAMLoginModule"
_AWS_MECHANISM = "AWS_MSK_IAM"
AWS_HANDLERS: Mapping[str, tuple[str, ...]] = {
    "sasl.client.callback.handler.class": (f"{_IAM}.IAMClientCallbackHandler", _TOKEN_HANDLER),
    "sasl.login.callback.handler.class": (_TOKEN_HANDLER,),
}
"""Property that names a Java class -> the classes that mean a login with AWS keys."""

_AWS_OPTIONS: Mapping[str, str] = {
    "awsProfileName": "sasl_aws_profile",
    "awsRoleArn": "sasl_aws_role_arn",
    "awsRoleSessionName": "sasl_aws_role_session_name",
    "awsRoleExternalId": "sasl_aws_external_id",
    "awsRoleAccessKeyId": "sasl_aws_access_key",
    "awsRoleSecretAccessKey": "sasl_aws_secret_key",
    "awsRoleSessionToken": "sasl_aws_token",
}
"""Option of the login module -> the attribute of a provider block."""

_AWS_IDLE = frozenset({"awsDebugCreds", "awsMaxBackOffTimeMs", "awsMaxRetries", "awsStsRegion"})
"""Options that do not change who logs in: how STS is asked, and what is logged."""


def _uses_aws(properties: Mapping[str, str]) -> bool:
    """True if these properties log in with AWS keys, by Amazon's own mechanism or by OAUTHBEARER.
    Both are the same login for a broker of MSK."""
    if properties.get("sasl.mechanism", "").strip().upper() == _AWS_MECHANISM:
        return True
    return any(properties.get(key, "").strip() == _TOKEN_HANDLER for key in AWS_HANDLERS)


def is_aws_class(key: str, value: str) -> bool:
    """True if this property only says that AWS keys log in."""
    return value.strip() in AWS_HANDLERS.get(key, ())


def _find_aws_faults(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What options of the login module mean that a provider block does not, and what to do."""
    role, profile = options.get("awsRoleArn"), options.get("awsProfileName")
    if role and profile:
        # In Java the second one counts only if the first one gives no credentials.
        yield "awsProfileName and awsRoleArn exclude each other", "remove one of them"
    for name in options:
        if name.startswith("awsRole") and not role:
            yield f"its option {name} has no effect without awsRoleArn", "remove it"


_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/"""
    r"""|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'"""
    r"""|(?P<word>[\w.$\-\u00a0-\uffff]+)|(?P<sign>[=;])""",
    re.DOTALL,
)
# Java's StreamTokenizer reads it: C escapes, octal numbers, and comments of both kinds. A password
# that is read otherwise is another password, and the broker only says that the login failed.
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")


class Login(Struct, frozen=True):
    """A login module with its options."""

    module: str
    """Name of a Java class."""
    # Passwords are among the options, so a Login is never shown or logged.
    options: Mapping[str, str]


def parse_login(text: str) -> Login:
    """The login that the text describes. Raises ValueError with a text that repeats nothing of the
    value."""
    tokens = list(_split_tokens(text))
    if not tokens or tokens[-1] != ("sign", ";"):
        raise ValueError("it does not end with a semicolon")
    # Java would try one module after the other, by flags such as `sufficient`. Kafka's brokers and
    # clients refuse that, too.
    if tokens.count(("sign", ";")) > 1:
        raise ValueError("it names more than one login module")
    words = tokens[:-1]
    if len(words) < 2 or words[1][1].lower() not in _FLAGS:
        raise ValueError("a login module is followed by `required`")
    options, arguments = {}, words[2:]
    for at in range(0, len(arguments), 3):
        option = arguments[at : at + 3]
        if [kind for kind, _ in option] != ["text", "sign", "text"] or option[1][1] != "=":
            raise ValueError('its options are not of the form name="value"')
        options[option[0][1]] = option[2][1]
    return Login(words[0][1], options)


def _split_tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"character {at + 1} begins neither a word nor a quoted text")
        at = match.end()
        quoted = match["double"] if match["double"] is not None else match["single"]
        if quoted is not None:
            yield "text", _ESCAPE.sub(_decode_escape, quoted)
        elif match["word"]:
            yield "text", match["word"]
        elif match["sign"]:
            yield "sign", match["sign"]


def _decode_escape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code.isdigit() and code < "8" else _NAMED.get(code, code)


SOURCE = "property"
"""The source in references to secrets that properties contain."""


class PropertyFault(NamedTuple):
    """What is wrong with one property. The values of secret properties are not repeated."""

    key: str
    text: str
    advice: str
    severity: Severity = Severity.ERROR


class BlockDraft(Struct):
    """A provider block that is being made."""

    attributes: dict[str, Value] = field(default_factory=dict)
    secrets: dict[str, Secret] = field(default_factory=dict)
    """str(SecretRef) -> the secret."""
    faults: list[PropertyFault] = field(default_factory=list)

    def hide(self, attribute: str, secret: str) -> None:
        """Set an attribute to a reference to this secret."""
        ref = SecretRef(SOURCE, attribute)
        self.attributes[attribute] = ref
        self.secrets[str(ref)] = Secret(secret)


_SECRET_ATTRIBUTES = frozenset({"sasl_password", "sasl_aws_secret_key", "sasl_aws_token"})

SCOPE = "sasl_oauth_scopes"
_JNDI = "com.sun.security.auth.module.JndiLoginModule"
_KAFKA = "org.apache.kafka.common.security"
_JAAS_FORM = f'write it as: {_KAFKA}.plain.PlainLoginModule required username="…" password="…";'
_MODULES: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    f"{_KAFKA}.plain.PlainLoginModule": (
        ("PLAIN",),
        {"username": "sasl_username", "password": "sasl_password"},
    ),
    f"{_KAFKA}.scram.ScramLoginModule": (
        ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        {
            "username": "sasl_username",
            "password": "sasl_password",
            "tokenauth": "sasl_token_auth",
        },
    ),
    KERBEROS_MODULE: (("GSSAPI",), KERBEROS_OPTIONS),
    f"{_KAFKA}.oauthbearer.OAuthBearerLoginModule": (
        ("OAUTHBEARER",),
        {"clientId": "sasl_username", "clientSecret": "sasl_password", "scope": SCOPE},
    ),
    _AWS_MODULE: ((_AWS_MECHANISM,), _AWS_OPTIONS),
}
"""Login module -> its mechanisms, and its options with the attribute of each."""


def read_login(properties: Mapping[str, str], block: BlockDraft) -> None:
    mechanism = properties.get("sasl.mechanism", "").strip().upper()
    by_aws = _uses_aws(properties)
    if by_aws:
        block.attributes["sasl_mechanism"] = AWS_MECHANISM
    elif mechanism:
        _read_mechanism(mechanism, block)
    text = properties.get("sasl.jaas.config")
    if text is None:
        return
    try:
        login = parse_login(text)
    except ValueError as error:
        block.faults.append(
            PropertyFault("sasl.jaas.config", f"it cannot be read: {error}", _JAAS_FORM)
        )
        return
    if login.module not in _MODULES:
        block.faults.append(_module_fault(login.module))
        return
    mechanisms, options = _MODULES[login.module]
    if mechanism not in mechanisms:
        block.faults.append(
            PropertyFault(
                "sasl.mechanism",
                f"sasl.jaas.config logs in with {' or '.join(mechanisms)}, but sasl.mechanism is "
                f"{mechanism or 'not set'}",
                f"set sasl.mechanism={mechanisms[0]}",
            )
        )
    if by_aws:
        options = _AWS_OPTIONS
        block.faults += [
            PropertyFault("sasl.jaas.config", text, advice)
            for text, advice in _find_aws_faults(login.options)
        ]
    _read_options(login.options, options, block)
    if login.module == KERBEROS_MODULE:
        block.faults += [
            PropertyFault("sasl.jaas.config", text, advice)
            for text, advice in find_jaas_faults(login.options)
        ]


def _read_mechanism(name: str, block: BlockDraft) -> None:
    if name in MECHANISMS:
        block.attributes["sasl_mechanism"] = name
        return
    block.faults.append(
        PropertyFault(
            "sasl.mechanism",
            f"sasl.mechanism {name} is not supported",
            "possible: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, AWS_MSK_IAM",
        )
    )


def _module_fault(name: str) -> PropertyFault:
    if name == _JNDI:
        text = "JndiLoginModule is refused: it loads code from any address that is given to it"
    else:
        text = (
            f"the login module {name} is refused: only those of Kafka and of Amazon, and Java's "
            "own for Kerberos, are supported"
        )
    return PropertyFault("sasl.jaas.config", text, suggest(name, _MODULES) or _JAAS_FORM)


def _read_options(
    options: Mapping[str, str], attributes: Mapping[str, str], block: BlockDraft
) -> None:
    for name, value in options.items():
        attribute = attributes.get(name)
        if attributes is _AWS_OPTIONS and name in _AWS_IDLE:
            text = f"its option {name} has no effect here"
            warning = PropertyFault("sasl.jaas.config", text, "remove it", Severity.WARNING)
            block.faults.append(warning)
        elif attribute is None:
            block.faults.append(
                PropertyFault(
                    "sasl.jaas.config",
                    f"its option {name} is not supported",
                    suggest(name, attributes) or f"possible: {', '.join(attributes)}",
                )
            )
        elif attribute == SCOPE:
            block.attributes[attribute] = tuple(value.split())
        elif attribute == "sasl_token_auth":
            block.attributes[attribute] = value.strip().lower() == "true"
        elif not attribute:
            continue
        elif attribute in _SECRET_ATTRIBUTES:
            block.hide(attribute, value)
        else:
            block.attributes[attribute] = value


_TEXTS: Mapping[str, str] = {
    "ssl.truststore.certificates": "ca_cert",
    "ssl.ca.location": "ca_cert",
    "ssl.ca.pem": "ca_cert",
    "ssl.keystore.certificate.chain": "client_cert",
    "ssl.certificate.location": "client_cert",
    "ssl.certificate.pem": "client_cert",
    "ssl.key.location": "client_key",
    "sasl.username": "sasl_username",
    "sasl.oauthbearer.client.credentials.client.id": "sasl_username",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.kerberos.principal": "sasl_kerberos_principal",
    "sasl.kerberos.keytab": "sasl_kerberos_keytab",
}
_HIDDEN: Mapping[str, str] = {
    "ssl.keystore.key": "client_key",
    "ssl.key.pem": "client_key",
    "ssl.key.password": "client_key_passphrase",
    "sasl.password": "sasl_password",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl_password",
}
_STORES = {
    "ssl.truststore": ("ca_cert",),
    "ssl.keystore": ("client_cert", "client_key"),
}
"""A store of type PEM (KIP-651) -> the attributes that its file sets."""

_JAVA_STORES = ("", "JKS", "PKCS12")
"""Types whose content decides which format it is; Kafka's default is JKS."""

_STORE_PASSWORDS = frozenset(f"{store}.password" for store in _STORES)
SECRET_KEYS = frozenset({*_HIDDEN, *_STORE_PASSWORDS, "sasl.jaas.config"})
"""Properties whose value is a password or contains one."""

_TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
_TIMEOUTS = ("default.api.timeout.ms", "request.timeout.ms")
_SPECIAL = frozenset(
    {
        "bootstrap.servers",
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        _TOKEN_URL,
        "sasl.oauthbearer.scope",
        "ssl.endpoint.identification.algorithm",
        *_TIMEOUTS,
        *(f"{store}.{part}" for store in _STORES for part in ("location", "type", "password")),
    }
)
_IGNORED = frozenset(
    {
        *("client.id", "client.dns.lookup", "connections.max.idle.ms", "enable.metrics.push"),
        *("metadata.max.age.ms", "metadata.recovery.rebootstrap.trigger.ms"),
        *("metadata.recovery.strategy", "metrics.num.samples", "metrics.recording.level"),
        *("metrics.sample.window.ms", "receive.buffer.bytes", "send.buffer.bytes"),
        *("reconnect.backoff.max.ms", "reconnect.backoff.ms", "retries"),
        *("retry.backoff.max.ms", "retry.backoff.ms"),
        *("socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms"),
        *("sasl.kerberos.min.time.before.relogin", "sasl.kerberos.ticket.renew.jitter"),
        "sasl.kerberos.ticket.renew.window.factor",
        *("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"),
        *("sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds"),
        *("sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter"),
        *("sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms"),
    }
)
"""Tuning of the Java client, which has no counterpart here."""

KNOWN = frozenset({*_TEXTS, *_HIDDEN, *_SPECIAL, *_IGNORED})


def read_provider_block(
    properties: Mapping[str, str],
) -> tuple[FrozenMap, Mapping[str, Secret], list[PropertyFault]]:
    """The attributes that these properties mean, the secrets to which they refer, and all
    faults."""
    block = BlockDraft()
    block.faults += _find_refused(properties)
    for key, attribute in _TEXTS.items():
        if properties.get(key):
            block.attributes[attribute] = properties[key]
    for key, attribute in _HIDDEN.items():
        if properties.get(key):
            block.hide(attribute, properties[key])
    for read in (
        _read_servers,
        _read_protocol,
        _read_stores,
        read_login,
        _read_token,
        _read_timeout,
    ):
        read(properties, block)
    return FrozenMap(block.attributes), block.secrets, block.faults


# ── keys ────────────────────────────────────────────────────────────────────────────────


def _find_refused(properties: Mapping[str, str]) -> Iterator[PropertyFault]:
    for key in properties:
        if is_aws_class(key, properties[key]):
            continue
        if key in _IGNORED:
            yield PropertyFault(key, f"{key} has no effect here", "remove it", Severity.WARNING)
        elif key not in KNOWN:
            yield _unknown_fault(key)


def _unknown_fault(key: str) -> PropertyFault:
    for pattern, reason in _DANGEROUS:
        if pattern.search(key):
            return PropertyFault(key, f"{key} is refused: {reason}", "remove it")
    return PropertyFault(
        key,
        f"{key} is not a connection setting",
        suggest(key, KNOWN) or "docs/commands.md lists all of them",
    )


_DANGEROUS = (
    # A file of properties often comes from elsewhere. sasl.kerberos.kinit.cmd names a program to
    # start, and JndiLoginModule loads classes over the network (CVE-2023-25194).
    (re.compile(r"kinit"), "no command is run; name a keytab or a ticket cache"),
    (re.compile(r"^config\.providers"), "plugins that fetch values are not loaded; use env:NAME"),
    (
        re.compile(r"\.class(es)?$|^metric\.reporters$|^security\.providers$|^interceptor\."),
        "it names a Java class, and plugins are not loaded",
    ),
)
"""Pattern of keys that would run other people's code -> why they are refused."""


# ── the parts of a connection ───────────────────────────────────────────────────────────


def _read_servers(properties: Mapping[str, str], block: BlockDraft) -> None:
    servers = [server.strip() for server in properties.get("bootstrap.servers", "").split(",")]
    block.attributes["bootstrap_servers"] = tuple(filter(None, servers))


def _read_protocol(properties: Mapping[str, str], block: BlockDraft) -> None:
    """Read security.protocol. A certificate or a login without TLS or SASL is a fault."""
    # As in Java, the default is PLAINTEXT, unlike in a provider block.
    protocol = properties.get("security.protocol", "").strip().upper() or "PLAINTEXT"
    block.attributes["security_protocol"] = protocol
    tls = [key for key in properties if key.startswith("ssl.")]
    if tls and "SSL" not in protocol:
        block.faults.append(
            PropertyFault(
                tls[0],
                f"{tls[0]} has no effect with security.protocol={protocol}",
                "set security.protocol to SSL or SASL_SSL, or remove it",
            )
        )
    if not properties.get("ssl.endpoint.identification.algorithm", "https").strip():
        block.faults.append(
            PropertyFault(
                "ssl.endpoint.identification.algorithm",
                "certificates are always checked against the host name",
                "remove it, and connect by the name in the certificate",
            )
        )


def _read_stores(properties: Mapping[str, str], block: BlockDraft) -> None:
    for store, attributes in _STORES.items():
        path = properties.get(f"{store}.location")
        kind = properties.get(f"{store}.type", "").strip().upper()
        if not path and kind in ("", "PEM"):
            continue
        name = store.replace(".", "_")
        password = properties.get(f"{store}.password")
        if kind in _JAVA_STORES:
            block.attributes[f"{name}_location"] = path
            if password:
                block.hide(f"{name}_password", password)
        elif kind != "PEM":
            block.faults.append(
                PropertyFault(
                    f"{store}.type",
                    f"{store} is of type {kind}; only JKS, PKCS12 and PEM are read",
                    "convert it: keytool -importkeystore -srckeystore STORE -destkeystore "
                    f"store.p12 -deststoretype PKCS12, and set {store}.type=PKCS12",
                )
            )
        elif password:
            block.faults.append(
                PropertyFault(
                    f"{store}.password",
                    "a PEM store has no password",
                    "remove it; ssl.key.password is the one of an encrypted key",
                )
            )
        else:
            block.attributes.update(dict.fromkeys(attributes, path))


def _read_token(properties: Mapping[str, str], block: BlockDraft) -> None:
    """Read where a token comes from: an endpoint or, as in Java, the file of a file: URL."""
    url = properties.get(_TOKEN_URL, "")
    if url.startswith("file:"):
        block.attributes["sasl_token_file"] = unquote(urlsplit(url).path)
    elif url:
        block.attributes["sasl_token_url"] = url
    if properties.get("sasl.oauthbearer.scope"):
        block.attributes[SCOPE] = tuple(properties["sasl.oauthbearer.scope"].split())


def _read_timeout(properties: Mapping[str, str], block: BlockDraft) -> None:
    for key in _TIMEOUTS:
        text = properties.get(key, "").strip()
        if text and not text.isdecimal():
            block.faults.append(
                PropertyFault(key, f"{key} is not a number of milliseconds", "correct it")
            )
        elif text:
            block.attributes.setdefault("operation_timeout", f"{text}ms")
