"""Connections in the words of Kafka's own tools: read as Java reads them, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.errors import ConfigurationError, UsageError
from kafkaform.core.secret import Secret
from kafkaform.workflow.connection import (
    Connection,
    ConnectionInputs,
    parse_properties,
    resolve_direct,
)
from kafkaform_kafka.connection.java_files import SECRET_KEYS, Login, parse_login
from kafkaform_kafka.connection.login_attributes import KERBEROS_MODULE as KRB5
from kafkaform_kafka.connection.login_attributes import AwsLogin, KerberosSettings
from kafkaform_kafka.connection.settings import KafkaSettings, read_settings

from ...kit.commands.folder import Folder
from ...kit.commands.here import Here

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
SECRET = 's3cr3t;\\ "=:'


def pairs(text: str) -> dict[str, str]:
    """What a file of this text says."""
    return {
        item.key: item.value for item in parse_properties(text.encode("latin-1"), "x.properties")
    }


# ── the format ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("a=b", "a", "b"),
        ("a:b", "a", "b"),
        ("a b", "a", "b"),
        ("  a \t=\f b ", "a", "b "),
        ("a = = b", "a", "= b"),
        ("a", "a", ""),
        ("a\\=\\:\\ b=c", "a=: b", "c"),
        ("a=b\\\n   c", "a", "bc"),
        ("a=b\\\r\n\tc\\\r  d", "a", "bcd"),
        ("a=b\\\\\nx=y", "a", "b\\"),
        ("a=\\t\\n\\r\\f\\q\\\\", "a", "\t\n\r\fq\\"),
        ("a=\\u00e9\\uD83D\\uDE00", "a", "é😀"),
        ("a=\xe9", "a", "é"),
        ("# a=1\n! a=2\n\n a=3 # no comment", "a", "3 # no comment"),
        ("a=1\na=2", "a", "2"),
        ("a=b\\", "a", "b"),
    ],
)
def test_properties_as_java_reads_them(text: str, key: str, value: str) -> None:
    """Separators, escapes, continuations and comments mean what `Properties.load` makes of them."""
    assert pairs(text)[key] == value


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uwxyz", "ok=1\na=\\ud800"])
def test_a_broken_escape_is_told_with_its_place(text: str) -> None:
    """It names file and line, and repeats nothing of the value."""
    with pytest.raises(ConfigurationError) as caught:
        pairs(text)
    (fault,) = caught.value.diagnostics
    assert fault.range is not None
    assert fault.range.line == text.count("\n") + 1
    assert "wxyz" not in f"{fault}"


def test_a_login_as_java_reads_it() -> None:
    """Quotes, escapes and comments of a JAAS text."""
    login = parse_login(f'{PLAIN} required // why\n username=u password="p\\"\\\\;\\101" ;')
    assert login == Login(PLAIN, {"username": "u", "password": 'p"\\;A'})


@pytest.mark.parametrize(
    "text",
    ["", PLAIN, f"{PLAIN} required", f"{PLAIN};", f"{PLAIN} required a;", f"{PLAIN} maybe;",
     f"{PLAIN} required; {SCRAM} required;", f'{PLAIN} required a="b;', f"{PLAIN} required a=[;"],
)  # fmt: skip
def test_a_login_that_cannot_be_read(text: str) -> None:
    """Half a login is refused, never guessed."""
    with pytest.raises(ValueError):
        parse_login(text)


# ── what they mean ──────────────────────────────────────────────────────────────────────


def given(*properties: str, **more: Any) -> tuple[Connection, KafkaSettings, str]:
    """The connection of these --client-property flags, its settings, and all that was said. A
    secret that stands in one is put into the environment, where it belongs."""
    environment, typed = {"PASSWORD": SECRET, "JAAS": login(PLAIN)}, []
    for number, text in enumerate(properties):
        key, _, value = text.partition("=")
        if key in SECRET_KEYS and not value.startswith(("env:", "file:")):
            environment[f"SECRET_{number}"] = value
            text = f"{key}=env:SECRET_{number}"
        typed.append(text)
    flags = ConnectionInputs("kafka-1:9092,kafka-2:9092", client_property=tuple(typed), **more)
    found, warnings = resolve_direct(flags, environment)
    settings = read_settings("kafka", found.settings.config, found.secrets)
    return found, settings, " ".join(item.summary + item.advice for item in warnings)


def login(module: str, **options: str) -> str:
    options = options or {"username": "ci", "password": SECRET}
    quoted = {k: v.replace("\\", "\\\\").replace('"', '\\"') for k, v in options.items()}
    return " ".join([module, "required", *(f'{k}="{v}"' for k, v in quoted.items())]) + ";"


def test_no_property_at_all_means_plaintext() -> None:
    """As in Java: --bootstrap-server alone connects without TLS and without a login."""
    _, settings, said = given()
    assert settings.servers == ("kafka-1:9092", "kafka-2:9092")
    assert (settings.protocol, settings.username, said) == ("PLAINTEXT", None, "")


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
)
def test_logins_with_passwords(mechanism: str, module: str) -> None:
    """User and password come out of the JAAS text, odd characters too, and go nowhere else."""
    found, settings, said = given(
        "security.protocol=sasl_ssl", f"sasl.mechanism={mechanism}",
        f"sasl.jaas.config={login(module)}",
    )  # fmt: skip
    assert (settings.protocol, settings.mechanism) == ("SASL_SSL", mechanism)
    assert (settings.username, settings.password) == ("ci", Secret(SECRET))
    assert SECRET not in f"{found}{found.settings}{settings}"
    assert said == ""


@pytest.mark.parametrize("key", sorted(SECRET_KEYS))
def test_a_secret_on_the_command_line_is_refused(here: Here, key: str) -> None:
    """The list of processes shows it to everybody, so there are two ways round, and it is not
    repeated."""
    said = here.fails(
        "describe", "cluster", "--bootstrap-server=b:1", f"--client-property={key}={SECRET}"
    )
    assert f"{key} is on the command line" in said
    assert f"{key}=env:NAME" in said and f"{key}=file:PATH" in said
    assert SECRET not in said


def test_a_secret_from_a_file_of_its_own(tmp_path: Path) -> None:
    """file:PATH takes the content without the line's end; a file that is not there is named."""
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n", "utf-8")
    flags = ("security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.username=ci")
    _, settings, said = given(*flags, f"sasl.password=file:{file}")
    assert (settings.password, said) == (Secret(SECRET), "")
    with pytest.raises(ConfigurationError) as caught:
        given(*flags, f"sasl.password=file:{file}.gone")
    (fault,) = caught.value.diagnostics
    assert f"file:{file}.gone, which has no value" in fault.summary
    assert f"Write it to {file}.gone." in fault.advice


def test_a_login_from_the_environment() -> None:
    """env:NAME takes the secret from the environment, without a warning."""
    _, settings, said = given(
        "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.jaas.config=env:JAAS"
    )
    assert (settings.password, said) == (Secret(SECRET), "")


def test_a_token_endpoint() -> None:
    """OAUTHBEARER: client id, secret and scope of the JAAS text, and Kafka's token endpoint."""
    _, settings, _ = given(
        "security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url=https://id.example.org/token",
        f"sasl.jaas.config={login(OAUTH, clientId='app', clientSecret=SECRET, scope='a b')}",
    )  # fmt: skip
    assert (settings.username, settings.password) == ("app", Secret(SECRET))
    assert (settings.token_url, settings.scopes) == ("https://id.example.org/token", ("a", "b"))


IAM = "software.amazon.msk.auth.iam"
IAM_LOGIN = f"{IAM}.IAMLoginModule"
ROLE = "arn:aws:iam::123456789012:role/kafka"


@pytest.mark.parametrize(
    "properties",
    [
        ("sasl.mechanism=AWS_MSK_IAM", f"sasl.jaas.config={IAM}.IAMLoginModule required;",
         f"sasl.client.callback.handler.class={IAM}.IAMClientCallbackHandler"),
        ("sasl.mechanism=OAUTHBEARER", f"sasl.jaas.config={OAUTH} required;",
         f"sasl.login.callback.handler.class={IAM}.IAMOAuthBearerLoginCallbackHandler",
         f"sasl.client.callback.handler.class={IAM}.IAMOAuthBearerLoginCallbackHandler"),
    ],
)  # fmt: skip
def test_aws_keys_in_the_words_of_amazons_library(properties: tuple[str, ...]) -> None:
    """Both ways that Amazon documents are the same login; its classes are names and not loaded."""
    _, settings, said = given("security.protocol=SASL_SSL", *properties)
    assert settings.aws_login == AwsLogin()
    assert (settings.protocol, settings.mechanism, said) == ("SASL_SSL", "OAUTHBEARER", "")


def test_a_role_in_the_words_of_amazons_library() -> None:
    """Role, session, external id and key of the login module; what only tunes STS is told."""
    options = {
        "awsRoleArn": ROLE, "awsRoleSessionName": "plan", "awsRoleExternalId": "x",
        "awsRoleAccessKeyId": "AKIA", "awsRoleSecretAccessKey": SECRET,
        "awsRoleSessionToken": f"{SECRET}2", "awsStsRegion": "eu-west-1",
    }  # fmt: skip
    found, settings, said = given(
        "security.protocol=SASL_SSL", "sasl.mechanism=AWS_MSK_IAM",
        f"sasl.jaas.config={login(IAM_LOGIN, **options)}",
    )  # fmt: skip
    assert settings.aws_login == AwsLogin(
        None, None, "AKIA", Secret(SECRET), Secret(f"{SECRET}2"), ROLE, "plan", "x"
    )
    assert "its option awsStsRegion has no effect here" in said
    assert SECRET not in f"{found}{found.settings}{settings}{said}"


def test_certificates() -> None:
    """PEM files of both kinds of stores; a keystore's file holds certificate and key."""
    _, settings, _ = given(
        "security.protocol=SSL",
        "ssl.truststore.type=PEM", "ssl.truststore.location=/tls/ca.pem",
        "ssl.keystore.type=pem", "ssl.keystore.location=/tls/me.pem",
        "ssl.key.password=env:PASSWORD", "request.timeout.ms=7000",
    )  # fmt: skip
    assert (settings.ca, settings.certificate, settings.key) == (
        "/tls/ca.pem",
        "/tls/me.pem",
        "/tls/me.pem",
    )
    assert (settings.passphrase, settings.timeout) == (Secret(SECRET), 7.0)


def test_tuning_of_the_java_client_is_told_and_ignored() -> None:
    """What changes nothing here is a warning."""
    _, _, said = given("metadata.max.age.ms=5", "client.id=x")
    assert "metadata.max.age.ms has no effect here" in said
    assert "client.id has no effect here" in said


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        (["securty.protocol=SSL"], 'Did you mean "security.protocol"?'),
        (["bootstrap.sever=x"], 'Did you mean "bootstrap.servers"?'),
        (["sasl.client.callback.handler.class=a.B"], "names a Java class"),
        (["metric.reporters=a.B"], "names a Java class"),
        (["sasl.client.callback.handler.class=" + IAM + ".Evil"], "names a Java class"),
        (
            ["sasl.mechanism=AWS_MSK_IAM",
             f"sasl.jaas.config={login(IAM_LOGIN, awsRoleArn=ROLE, awsProfileName='a')}"],
            "awsProfileName and awsRoleArn exclude each other",
        ),
        (
            ["sasl.mechanism=AWS_MSK_IAM",
             f"sasl.jaas.config={login(IAM_LOGIN, awsRoleSessionName='a')}"],
            "awsRoleSessionName has no effect without awsRoleArn",
        ),
        (
            ["sasl.mechanism=AWS_MSK_IAM",
             f"sasl.jaas.config={login(IAM_LOGIN, awsMskRegionProvider='a.B')}"],
            "its option awsMskRegionProvider is not supported",
        ),
        (["ssl.engine.factory.class=a.B"], "names a Java class"),
        (["sasl.kerberos.kinit.cmd=/bin/evil"], "no command is run"),
        (["config.providers=file"], "plugins that fetch values are not loaded"),
        (["sasl.mechanism=DIGEST-MD5"], "DIGEST-MD5 is not supported"),
        (["sasl.jaas.config=com.sun.security.auth.module.JndiLoginModule required a=b;"], "Jndi"),
        (["sasl.jaas.config=com.example.Login required a=b;"], "only those of Kafka"),
        ([f"sasl.jaas.config={PLAIN} required"], "semicolon"),
        ([f"sasl.jaas.config={login(PLAIN)}"], "sasl.mechanism is not set"),
        (["sasl.mechanism=PLAIN", f"sasl.jaas.config={login(SCRAM)}"], "sasl.mechanism is PLAIN"),
        (
            ["sasl.mechanism=PLAIN", f"sasl.jaas.config={login(PLAIN, user='x')}"],
            'Did you mean "username"?',
        ),
        (
            ["sasl.mechanism=PLAIN", f"sasl.jaas.config={login(PLAIN, tokenauth='true')}"],
            "option tokenauth is not supported",
        ),
        (
            ["sasl.mechanism=GSSAPI", f"sasl.jaas.config={KRB5} required useKeyTab=true;"],
            "useKeyTab and keyTab do not agree",
        ),
        (
            ["sasl.mechanism=GSSAPI", f"sasl.jaas.config={KRB5} required keyTab=a;"],
            "useKeyTab and keyTab do not agree",
        ),
        (
            ["sasl.mechanism=GSSAPI", f"sasl.jaas.config={KRB5} required storeKey=true;"],
            "neither a keytab nor a ticket cache",
        ),
        (
            ["sasl.mechanism=GSSAPI", f"sasl.jaas.config={KRB5} required tryFirstPass=true;"],
            "option tryFirstPass is not supported",
        ),
        (
            ["security.protocol=SSL", "ssl.keystore.type=BCFKS", "ssl.keystore.location=a.bcfks"],
            "only JKS, PKCS12 and PEM are read",
        ),
        (
            ["security.protocol=SSL", "ssl.keystore.type=PKCS12", "ssl.keystore.location=a.p12"],
            "ssl_keystore_location cannot be used without ssl_keystore_password",
        ),
        (
            ["security.protocol=SSL", "ssl.truststore.location=no-such.jks"],
            "ssl_truststore_location no-such.jks cannot be read",
        ),
        (
            ["security.protocol=SSL", "ssl.truststore.type=PEM", "ssl.truststore.location=a.pem",
             "ssl.truststore.password=env:PASSWORD"],
            "a PEM store has no password",
        ),
        (["ssl.truststore.type=PEM", "ssl.truststore.location=a"], "has no effect with security"),
        (["security.protocol=SSL", "ssl.endpoint.identification.algorithm="], "always checked"),
        (["request.timeout.ms=soon"], "not a number of milliseconds"),
        (["sasl.password=env:NOWHERE"], "env:NOWHERE, which has no value"),
    ],
)  # fmt: skip
def test_what_is_refused(properties: list[str], told: str) -> None:
    """Each fault says what is wrong and what to do, and no secret."""
    with pytest.raises(ConfigurationError) as caught:
        given(*properties)
    text = "\n".join(f"{item.summary} {item.advice}" for item in caught.value.diagnostics)
    assert told in text
    assert SECRET not in text


def test_a_delegation_token_of_the_java_client() -> None:
    """`tokenauth` says that user and password are those of a token (KIP-48)."""
    lines = ["security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512"]
    token = {"username": "token-id", "password": SECRET}
    _, settings, _ = given(*lines, f"sasl.jaas.config={login(SCRAM, **token, tokenauth='true')}")
    assert settings.token_auth and settings.principal is None
    _, settings, _ = given(*lines, f"sasl.jaas.config={login(SCRAM, **token, tokenauth='false')}")
    assert not settings.token_auth


def test_kerberos_of_the_java_client() -> None:
    """A keytab or a ticket cache, in the options of Java's login module or librdkafka's words."""
    lines = ["security.protocol=SASL_SSL", "sasl.mechanism=GSSAPI"]
    options = 'useKeyTab=true storeKey=true keyTab="/etc/ci.keytab" principal="ci@EXAMPLE.COM"'
    jaas = f"sasl.jaas.config={KRB5} required {options};"
    keytab = KerberosSettings("broker", "ci@EXAMPLE.COM", "/etc/ci.keytab")
    _, settings, said = given(
        *lines, "sasl.kerberos.service.name=broker", "sasl.kerberos.ticket.renew.jitter=0.1", jaas
    )
    assert settings.kerberos == keytab and "ticket.renew.jitter has no effect" in said
    _, settings, _ = given(
        *lines,
        "sasl.kerberos.service.name=broker",
        "sasl.kerberos.keytab=/etc/ci.keytab",
        "sasl.kerberos.principal=ci@EXAMPLE.COM",
    )
    assert settings.kerberos == keytab
    cache = f'{KRB5} required useTicketCache=true ticketCache="/tmp/cc";'
    _, settings, _ = given(*lines, f"sasl.jaas.config={cache}")
    assert settings.kerberos == KerberosSettings("kafka", ticket_cache="/tmp/cc")


@pytest.mark.parametrize("server", ["kafka", "kafka:", "a b:1", "kafka:0", "kafka:70000", ":9092"])
def test_a_server_is_host_and_port(server: str) -> None:
    """Anything else is a fault before a connection is tried."""
    with pytest.raises(UsageError):
        resolve_direct(ConnectionInputs(server), {})


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    """--bootstrap-server over --client-property over the file."""
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=a:1\nsecurity.protocol=PLAINTEXT\nrequest.timeout.ms=1000\n")
    found, _ = resolve_direct(ConnectionInputs("b:2", file, ("request.timeout.ms=2000",)), {})
    assert found.settings.config["bootstrap_servers"] == ("b:2",)
    assert found.settings.config["operation_timeout"] == "2000ms"


# ── commands ────────────────────────────────────────────────────────────────────────────


def test_a_fault_in_a_file_is_shown_at_its_line(here: Here) -> None:
    """File, line and key are shown, the value is not."""
    here.write("client.properties", f"# ours\nsasl.jass.config={login(PLAIN)}\n")
    said = here.fails(
        "describe", "cluster", "--bootstrap-server=x:1", "--command-config=client.properties"
    )
    assert "client.properties:2" in said
    assert 'Did you mean "sasl.jaas.config"?' in said
    assert "s3cr3t" not in said


def test_neither_flags_nor_configuration(here: Here) -> None:
    """In an empty folder the command says how to name a cluster."""
    assert "--bootstrap-server HOST:PORT" in here.fails("describe", "topics")


def test_flags_and_a_provider_block_exclude_each_other(here: Here) -> None:
    """--provider is for configurations."""
    said = here.fails("describe", "topics", "--bootstrap-server=x:1", "--provider=kafka")
    assert "Give one of them" in said


def test_an_empty_address_is_not_the_folders_cluster(folder: Folder) -> None:
    """A variable of a script that is not set must not lead to another cluster than was meant."""
    for line in (("describe", "topics"), ("alter", "topic", "t", "--add-config", "a=1")):
        assert "is not HOST:PORT" in folder.fails(1, *line, "--bootstrap-server", "")


def test_a_file_that_is_not_there(here: Here) -> None:
    """It is named."""
    assert "nope.properties" in here.fails("describe", "topics", "--command-config=nope.properties")


def test_several_provider_blocks(folder: Folder) -> None:
    """One of several is chosen with --provider; a wrong name gets the nearest."""
    block = (folder.path / "provider.kf.hcl").read_text()
    folder.write("eu.kf.hcl", block.replace("{", '{\n  alias = "eu"', 1))
    assert "--provider: kafka, kafka.eu" in folder.fails(1, "describe", "cluster")
    assert 'Did you mean "kafka.eu"?' in folder.fails(
        1, "describe", "cluster", "--provider=kafka.e"
    )
    assert folder.broker.cluster_id in folder.done("describe", "cluster", "--provider=kafka.eu").out
