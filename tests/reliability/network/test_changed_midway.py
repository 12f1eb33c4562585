"""What a run relies on changes while it runs: its login is taken away, the listener's certificate
becomes another authority's, another cluster answers at the same port. It stops with a code and a
line that say so, and with things put right the next apply does the rest."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.sandbox import brokers

from ...kit import promises
from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Ended, Running
from ...kit.kafka import doors
from ...kit.kafka.clusters import HELD, own_sandbox
from ...kit.kafka.quota_user import account
from ...kit.kafka.truth import Observer, looking
from ...kit.lane import APPLY, PARTIAL, REFUSED, UNKNOWN
from ...kit.promises import Before
from ...kit.proxy.faults import Fault
from ...kit.proxy.frames import WRITES
from ...kit.proxy.proxy import SECONDS, Proxy, proxying

PASSWORD = "of-the-runner"
SCRAM = "kafka_user_scram_credential"
ACL_FAULT = {True: "CLUSTER_AUTHORIZATION_FAILED", False: "TRANSPORT"}
PROVIDER = """\
provider "kafka" {{
  bootstrap_servers = ["{bootstrap}"]
  sasl_password     = secret_env("PROOF_PASSWORD")
  operation_timeout = "2s"
{more}
}}
"""
ADMIN = """\
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
"""
RUNNER = """\
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "SCRAM-SHA-256"
  sasl_username     = "{name}"
"""
OVER_TLS = """\
  security_protocol = "SASL_SSL"
  sasl_mechanism    = "PLAIN"
  sasl_username     = "admin"
  ca_cert           = "{ca}"
"""
BLOCKS = """\
resource "kafka_topic" "t" {{
  name       = "{prefix}-t"
  partitions = 1
}}

resource "kafka_acl" "a" {{
  acl_principal       = "User:{prefix}-u"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = kafka_topic.t.name
}}
"""


@dataclass
class Scene:
    """A folder whose provider connects through a proxy, and another client that looks."""

    box: sandbox.Sandbox
    proxy: Proxy
    folder: Folder
    prefix: str
    client: Observer
    before: Before = field(default_factory=Before)

    def write(self, more: str) -> None:
        """The configuration. more: how its provider connects."""
        text = PROVIDER.format(bootstrap=self.proxy.bootstrap, more=more)
        blocks = BLOCKS.format(prefix=self.prefix)
        (self.folder.path / "main.kf.hcl").write_text(text + blocks, "utf-8")

    def until_held(self) -> Running:
        """Begin an apply, and wait until its second batch is about to reach the broker."""
        self.before = Before.of(self.folder.path, self.world())
        self.proxy.arm(Fault("CreateAcls", "wait"))
        process = self.folder.start(*APPLY)
        assert self.proxy.fired.wait(SECONDS), process.finish(1).out
        assert self.kinds().count("outcome") == 1
        return process

    def world(self) -> promises.World:
        return self.client.world(f"{self.prefix}-")

    def files(self) -> list[bytes]:
        """State and log."""
        return [(self.folder.path / name).read_bytes() for name in (promises.STATE, promises.LOG)]

    def kinds(self) -> list[str]:
        """What the log's records are."""
        return [record.kind for record in self.folder.records()]

    def stands(self, *, open_: int) -> None:
        """So many intents are open, and the files are whole; only the topic is there."""
        assert not promises.kept(self.folder.path, self.before)
        assert len(promises.open_intents(self.folder.records())) == open_
        assert set(self.world()) == {("kafka_topic", f"{self.prefix}-t")}

    def mends(self) -> None:
        """The next apply ends with 0; nothing is lost, and all that is declared is there."""
        ended = self.folder.apply()
        assert ended.code == 0, ended.out
        faults = promises.broken(self.folder.path, self.world, self.before)
        assert not faults, "\n".join(faults)
        assert {kind for kind, _ in self.world()} == {"kafka_topic", "kafka_acl"}


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[sandbox.Sandbox]:
    """One broker that nobody else uses."""
    with own_sandbox(f"midway-{os.getpid()}", config=HELD) as made:
        yield made


@contextmanager
def scene(
    box: sandbox.Sandbox, path: Path, prefix: str, password: str, tls: ssl.SSLContext | None = None
) -> Iterator[Scene]:
    path.mkdir()
    with (
        proxying(box.brokers[0].ports.client, tls=tls) as proxy,
        looking(box.bootstrap, box.admin_password) as client,
    ):
        folder = Folder(path, proxy.bootstrap, password)
        yield Scene(box, proxy, folder, prefix, client)


def writes(proxy: Proxy) -> list[str]:
    """Requests that change something, dry runs among them, and came."""
    return [p.request.api for p in proxy.passed if p.request.api in ("AlterConfigs", *WRITES)]


def said(ended: Ended) -> str:
    """What it printed, in one line."""
    assert "Traceback" not in ended.out and "unexpectedly" not in ended.out, ended.out
    return " ".join(ended.out.replace("│", " ").split())


# ── the login ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("connected", [True, False], ids=["rights", "connections"])
def test_a_login_is_revoked(box: sandbox.Sandbox, tmp_path: Path, connected: bool) -> None:
    """The user of a run loses ACLs and credential after the first batch. With its connections open
    the second batch is refused, and the missing right is named; without them its outcome is
    unknown. The next apply names the login and writes nothing, and with the user back one ends
    with 0."""
    user = "open" if connected else "closed"
    with scene(box, tmp_path / "folder", user, PASSWORD) as it, ExitStack() as rights:
        rights.enter_context(account(box, user, password=PASSWORD))
        it.write(RUNNER.format(name=user))
        process = it.until_held()
        rights.close()
        _until_gone(it.client, user)
        if not connected:
            it.proxy.cut()
        it.proxy.release(passes=connected)
        ended = process.finish()
        assert ended.code == (PARTIAL if connected else UNKNOWN), ended.out
        told = "a right on the cluster is missing" if connected else "no answer to CreateAcls"
        assert f"(kafka_acl.a) {ACL_FAULT[connected]}: {told}" in said(ended)
        it.stands(open_=0 if connected else 1)
        _no_login(it)
        with account(box, user, password=PASSWORD):
            it.mends()


def _no_login(it: Scene) -> None:
    """An apply of a user that is gone says so, and changes no file."""
    before = it.files()
    ended = it.folder.apply()
    assert ended.code == 1, ended.out
    assert "wrong username or password" in said(ended) and "sasl_username" in said(ended)
    assert it.files() == before


def _until_gone(client: Observer, user: str) -> None:
    """Wait until the broker has forgotten what the user was allowed."""
    deadline = time.monotonic() + SECONDS
    while user in client.pure.describe_user_scram_credentials() or any(
        key.startswith(f"User:{user}|") for _, key in client.acls(user)
    ):
        assert time.monotonic() < deadline
        time.sleep(0.05)


# ── the certificate ─────────────────────────────────────────────────────────────────────


def test_a_certificate_is_rotated(box: sandbox.Sandbox, tmp_path: Path) -> None:
    """After the first batch the listener shows a certificate of another authority: the run says
    so and sends nothing over a new connection; with the new authority the next one goes on."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    first, second = (_shown(tmp_path, doors.authority(name), name) for name in ("one", "two"))
    context.load_cert_chain(first.with_suffix(".pem"))
    with scene(box, tmp_path / "folder", "tls", box.admin_password, context) as it:
        it.write(OVER_TLS.format(ca=first.with_suffix(".ca")))
        process = it.until_held()
        context.load_cert_chain(second.with_suffix(".pem"))
        it.proxy.cut()
        it.proxy.release(passes=False)
        ended = process.finish()
        assert ended.code == UNKNOWN, ended.out
        assert "certificate verify failed" in said(ended)
        assert (it.proxy.opened, it.proxy.passed) == (0, [])
        it.stands(open_=1)
        it.write(OVER_TLS.format(ca=second.with_suffix(".ca")))
        it.mends()


def _shown(folder: Path, authority: doors.Authority, name: str) -> Path:
    """Files of a server's key and certificate (.pem) and of who signed it (.ca)."""
    path = folder / name
    certificate, key = authority.issue("broker")
    path.with_suffix(".pem").write_text(key + certificate)
    path.with_suffix(".ca").write_text(authority.pem)
    return path


# ── the cluster ─────────────────────────────────────────────────────────────────────────


def test_another_cluster_at_the_same_port(box: sandbox.Sandbox, tmp_path: Path) -> None:
    """A run is killed with an intent open, and a new cluster comes up where the old one was: plan
    and apply refuse it, the open intent is not looked up there, and nothing is written, neither
    there nor here. With the old one back the next apply does the rest."""
    with scene(box, tmp_path / "folder", "other", box.admin_password) as it:
        it.write(ADMIN)
        process = it.until_held()
        process.send_signal(9)
        it.proxy.release(passes=False)
        assert process.finish().code == -9
        it.stands(open_=1)
        with _instead(box) as other:
            assert other.bootstrap == box.bootstrap and other.cluster_id != box.cluster_id
            _refused(it, other)
        it.mends()


def _refused(it: Scene, other: sandbox.Sandbox) -> None:
    """Neither command does anything with this cluster."""
    mine = Folder(it.folder.path, it.proxy.bootstrap, other.admin_password)
    before = it.files()
    it.proxy.cut()
    for ended in (mine.plan(), mine.apply()):
        assert ended.code == REFUSED, ended.out
        assert other.cluster_id in said(ended) and it.box.cluster_id in said(ended)
    assert it.proxy.passed and not writes(it.proxy)
    assert it.files() == before
    with looking(other.bootstrap, other.admin_password) as client:
        assert not any(kind != SCRAM for kind, _ in client.world(""))


@contextmanager
def _instead(box: sandbox.Sandbox) -> Iterator[sandbox.Sandbox]:
    """A new cluster on the ports of this one, which is stopped meanwhile."""
    sandbox.down(box.name, keep_data=True)
    try:
        same = mock.patch.object(brokers, "allocate_ports", return_value=(box.brokers[0].ports,))
        with same, own_sandbox(f"{box.name}-other", config=HELD) as other:
            yield other
    finally:
        assert sandbox.up(box.make_options(), count_brokers).bootstrap == box.bootstrap
