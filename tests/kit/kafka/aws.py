"""AWS on the loopback address: who has which keys, an STS that gives roles away, and a check of
signatures that is not the signer's (AWS Signature Version 4, as Amazon describes it)."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import pytest

REGION = "eu-west-1"
SKEW = 30.0
"""Seconds by which clocks may differ, as with Kafka's own validator. Without them a test would fail
on a slow computer."""
EMPTY = hashlib.sha256(b"").hexdigest()
_ANSWER = """\
<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<Credentials><AccessKeyId>{0}</AccessKeyId><SecretAccessKey>{1}</SecretAccessKey>
<SessionToken>{2}</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials>
<AssumedRoleUser><Arn>arn:aws:sts::1:x</Arn><AssumedRoleId>x</AssumedRoleId></AssumedRoleUser>
</AssumeRoleResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
</AssumeRoleResponse>"""
_REFUSAL = """\
<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>{0}</Message></Error></ErrorResponse>"""


@dataclass(frozen=True)
class Keys:
    """An access key."""

    access: str
    secret: str
    token: str = ""


USER = Keys("AKIAUSER000000000001", "user-secret-b5c01f7d")
TEMPORARY = Keys("ASIATEMP000000000002", "temp-secret-9d4e22aa", "temp-token-71f0c3")
ROLE = Keys("ASIAROLE000000000003", "role-secret-0c1d77ee", "role-token-55aa19")
KNOWN = {keys.access: keys for keys in (USER, TEMPORARY, ROLE)}
SECRETS = tuple(text for keys in KNOWN.values() for text in (keys.secret, keys.token) if text)


class Forged(Exception):
    """The token is not a valid signature."""


def check_token(token: str, region: str = REGION) -> Keys:
    """Whose token it is, as a broker of MSK decides it. Raises Forged."""
    url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query, strict_parsing=True, keep_blank_values=True))
    # The signer adds its own name after it has signed.
    signature, agent = given.pop("X-Amz-Signature"), given.pop("User-Agent")
    keys = KNOWN.get(given["X-Amz-Credential"].partition("/")[0])
    scope = given["X-Amz-Credential"].partition("/")[2]
    date = given["X-Amz-Date"]
    query = "&".join(f"{_quoted(k)}={_quoted(given[k])}" for k in sorted(given))
    host = f"kafka.{region}.amazonaws.com"
    request = f"GET\n/\n{query}\nhost:{host}\n\nhost\n{EMPTY}"
    expected = {
        "a key that is known": keys is not None,
        "https": parts.scheme == "https",
        "host": parts.netloc == host,
        "scope": scope == f"{date[:8]}/{region}/kafka-cluster/aws4_request",
        "action": given["Action"] == "kafka-cluster:Connect",
        "name": agent.startswith("aws-msk-iam-sasl-signer-python/"),
        "time": _age(date) - SKEW < int(given["X-Amz-Expires"]) <= 900,
    }
    wrong = [name for name, right in expected.items() if not right]
    if wrong or keys is None:
        raise Forged(", ".join(wrong))
    if given.get("X-Amz-Security-Token", "") != keys.token:
        raise Forged("session token")
    if not hmac.compare_digest(signature, _sign(keys.secret, scope, date, request)):
        raise Forged("signature")
    return keys


def _age(date: str) -> float:
    signed = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.UTC)
    return (datetime.datetime.now(datetime.UTC) - signed).total_seconds()


def _sign(secret: str, scope: str, date: str, request: str) -> str:
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{digest}"
    return hmac.digest(key, text.encode(), "sha256").hex()


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")


@dataclass
class Sts:
    """forms: what was asked; users: the access keys that asked; refused: nobody gets a role."""

    url: str = ""
    forms: list[Mapping[str, str]] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    refused: bool = False


@contextmanager
def serving_sts() -> Iterator[Sts]:
    """Serve AssumeRole until the block ends: everybody becomes ROLE."""
    sts = Sts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            sts.forms.append({name: values[0] for name, values in parse_qs(body).items()})
            login = re.search(r"Credential=(\w+)/", self.headers["Authorization"])
            sts.users.append(login[1] if login else "")
            # AWS repeats the request in a refusal, and the session token is in it.
            refusal = _REFUSAL.format(self.headers.get("X-Amz-Security-Token", ""))
            answer = _ANSWER.format(ROLE.access, ROLE.secret, ROLE.token)
            data = (refusal if sts.refused else answer).encode()
            self.send_response(403 if sts.refused else 200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sts.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield sts
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()


def leave_aws(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    """No credentials of whoever runs the tests: an environment without AWS's variables, a home
    without its files, and no metadata service."""
    import os

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{home}/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", f"{home}/credentials")


def use_keys(monkeypatch: pytest.MonkeyPatch, keys: Keys) -> None:
    """These keys in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys.access)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys.secret)
    if keys.token:
        monkeypatch.setenv("AWS_SESSION_TOKEN", keys.token)
