"""A Kerberos realm on this computer, and a broker whose clients log in with its tickets.

The KDC is MIT Kerberos. Debian has it in krb5-kdc and krb5-admin-server (kadmin.local). Everything
is in one folder, on one port of the loopback interface.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.core.progress import ignore_event
from kafkaform.sandbox import brokers, configuration, lifecycle, record

REALM = "KAFKAFORM.TEST"
HOST = "localhost"
SERVICE = f"kafka/{HOST}@{REALM}"
PASSWORD = "p4ssw0rd of the realm"
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
_FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/sbin")
_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
SECONDS = 60


def find_missing() -> str:
    """What this computer lacks for a realm; empty if it lacks nothing."""
    missing = [name for name in _PROGRAMS if _find(name) is None]
    if missing:
        packages = "krb5-kdc, krb5-admin-server and krb5-user"
        return f"MIT Kerberos is missing ({', '.join(missing)}): install {packages}"
    if find_spec("gssapi") is None:
        return "gssapi is missing: install libkrb5-dev, then pip install -e '.[kerberos]'"
    return ""


def _find(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *_FOLDERS)))


@dataclass(frozen=True)
class Realm:
    """A running realm. Clients find it by `environment`."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "krb5.conf"

    @property
    def environment(self) -> Mapping[str, str]:
        """What the Kerberos library reads."""
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / 'no-tickets'}",
        }

    def keytab(self, principal: str) -> Path:
        """A keytab with the key of this principal, who is created."""
        path = self.folder / f"{principal.replace('/', '-')}.keytab"
        self.administer(f"addprinc -randkey {principal}")
        self.administer(f"ktadd -k {path} {principal}")
        return path

    def user(self, name: str) -> str:
        """The principal of a new user with PASSWORD."""
        self.administer(f'addprinc -pw "{PASSWORD}" {name}')
        return f"{name}@{REALM}"

    def tickets(self, principal: str, *options: str) -> str:
        """The name of a ticket cache that `kinit` has filled for a user."""
        cache = f"FILE:{self.folder / 'tickets'}-{len(list(self.folder.iterdir()))}"
        self.run("kinit", "-c", cache, *options, principal, text=f"{PASSWORD}\n")
        return cache

    def administer(self, query: str) -> None:
        self.run("kadmin.local", "-r", REALM, "-q", query)

    def run(self, program: str, *arguments: str, text: str = "") -> None:
        found = subprocess.run(
            [str(_find(program)), *arguments],
            input=text,
            text=True,
            capture_output=True,
            env={**os.environ, **self.environment},
            timeout=SECONDS,
            check=False,
        )
        assert found.returncode == 0, (program, arguments, found.stdout, found.stderr)


@contextmanager
def running(folder: Path) -> Iterator[Realm]:
    """Start a KDC; end it afterwards."""
    (port,) = brokers.find_free_ports(1)
    realm = Realm(folder)
    _write(folder, port)
    realm.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master of the test")
    with (folder / "kdc.err").open("w") as errors:
        kdc = subprocess.Popen(
            [str(_find("krb5kdc")), "-n", "-r", REALM],
            env={**os.environ, **realm.environment},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        _wait_until_open(port, kdc)
        yield realm
    finally:
        kdc.terminate()
        kdc.wait(SECONDS)


def _wait_until_open(port: int, kdc: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        assert kdc.poll() is None, "the KDC has ended"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "the KDC does not listen"
            time.sleep(0.05)
        else:
            return


def _write(folder: Path, port: int) -> None:
    # Names are not looked up in DNS: a test must not depend on what a resolver makes of localhost.
    (folder / "krb5.conf").write_text(
        f"""[libdefaults]
  default_realm = {REALM}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {REALM} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  {HOST} = {REALM}
"""
    )
    (folder / "kdc.conf").write_text(
        f"""[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {REALM} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/kadm5.acl
    max_life = 1h
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
  admin_server = FILE:{folder}/kadmin.log
"""
    )


@contextmanager
def opened(name: str, realm: Realm) -> Iterator[tuple[sandbox.Sandbox, str]]:
    """A broker with a listener for Kerberos, and the listener's address. The principal
    admin@REALM is a super user."""
    options = sandbox.SandboxOptions(name)
    keytab = realm.keytab(SERVICE)
    with record.hold_lock(name):
        prepared = lifecycle._prepare(options, None)
        (port,) = brokers.find_free_ports(1)
        _extend(prepared.folder / "broker-1.properties", port, keytab)
        config = f"-Djava.security.krb5.conf={realm.config}"
        with mock.patch.object(configuration, "_JVM", (*configuration._JVM, config)):
            runtime = lifecycle._find_runtime(options, ignore_event)
            box = brokers.start_sandbox(prepared, runtime, 180, count_brokers, ignore_event)
    try:
        yield box, f"{HOST}:{port}"
    finally:
        sandbox.down(name)


def _extend(properties: Path, port: int, keytab: Path) -> None:
    text = properties.read_text("latin-1")
    old = dict(line.split("=", 1) for line in text.splitlines())
    added = f"KERBEROS://{HOST}:{port}"
    prefix = "listener.name.kerberos"
    options = f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="{SERVICE}"'
    settings = {
        "listeners": f"{old['listeners']},{added}",
        "advertised.listeners": f"{old['advertised.listeners']},{added}",
        "listener.security.protocol.map": (
            f"{old['listener.security.protocol.map']},KERBEROS:SASL_PLAINTEXT"
        ),
        f"{prefix}.sasl.enabled.mechanisms": "GSSAPI",
        f"{prefix}.gssapi.sasl.jaas.config": f"{_MODULE} required {options};",
        f"{prefix}.sasl.kerberos.service.name": "kafka",
        # KIP-368: a connection must log in again before this many milliseconds are over.
        f"{prefix}.gssapi.connections.max.reauth.ms": "3000",
    }
    properties.write_text(text + "".join(f"{k}={v}\n" for k, v in settings.items()), "latin-1")
