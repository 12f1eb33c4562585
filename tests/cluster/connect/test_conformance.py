"""The Kafka Connect provider keeps the promises of the contract, on a real worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kafkaform.core.clock import Clock, SystemClock
from kafkaform.core.resource import Fault, Identity, Observed, Reading
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.provider.contract import Session
from kafkaform.provider.http.client import HttpClient, Proof
from kafkaform.provider.http.exchange import Call, HttpAnswer
from kafkaform.provider.http.settings import BasicLogin, HttpSettings
from kafkaform.provider.testing.conformance import Check, select_checks
from kafkaform.provider.testing.workbench import INSTANCE
from kafkaform_connect import rest
from kafkaform_connect.provider import PROVIDER
from kafkaform_connect.session import WorkerAddress, WorkersProof
from kafkaform_connect.session import connect as open_session

from ...kit.servers import Worker, wait_until
from ...unit.connect.connector_systems import ConnectorSystem

PASSWORD = SecretRef("env", "CONNECT_PASSWORD")
TIMEOUT = 20.0


class LosesLogin:
    """Asks with a login that counts until `lose`. See `kafkaform_connect.rest.WorkersClient`."""

    def __init__(self, good: HttpClient, bad: HttpClient) -> None:
        self._client, self._good, self._bad = good, good, bad

    def lose(self) -> None:
        self._client = self._bad

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        return self._client.ask_all(calls)

    def prove(self) -> None:
        self._client.prove()

    def close(self) -> None:
        self._good.close()
        self._bad.close()


def wait_for_states(session: Session) -> Session:
    """The session; a read waits until workers have written down the state of what it reads, as the
    verification of an apply does."""
    ask = session.read

    def read(ids: Sequence[Identity], **how: Any) -> Mapping[Identity, Reading]:
        found: dict[Identity, Reading] = {}

        def is_settled() -> bool:
            found.update(ask(ids, **how))
            return not any(isinstance(r, Observed) and r.moving for r in found.values())

        wait_until(is_settled)
        return found

    session.read = read  # type: ignore[method-assign]  # only for this session
    return session


class RealSystem(ConnectorSystem):
    """Connectors of a worker of the sandbox. It lets a login do everything or nothing."""

    def __init__(self, worker: Worker) -> None:
        self.clock: Clock = SystemClock()
        self._worker = worker

    def open(self, *, privileged: bool) -> Session:
        worker = self._worker
        if privileged:
            config = FrozenMap(
                url=worker.url,
                username=worker.username,
                password=PASSWORD,
                operation_timeout=int(TIMEOUT),
            )
            secrets = {str(PASSWORD): Secret(worker.password)}
            return wait_for_states(PROVIDER.open(INSTANCE, config, secrets))
        proof = WorkersProof(worker.url)
        good, bad = (self._make_client(word, proof) for word in (worker.password, "wrong-one"))
        client = LosesLogin(good, bad)
        address = WorkerAddress(client, {worker.url: client}, proof)
        session = open_session(INSTANCE, address, None, "nobody", TIMEOUT, self.clock)
        client.lose()
        return session

    def _make_client(self, password: str, proof: WorkersProof) -> HttpClient:
        login = BasicLogin(self._worker.username, Secret(password))
        settings = HttpSettings((self._worker.url,), timeout=TIMEOUT, auth=login)
        return HttpClient(settings, Proof(rest.SERVER, proof.check))

    def send(self, call: Call) -> HttpAnswer:
        answers: list[tuple[int, Any]] = []

        def is_answered() -> bool:
            """A rebalance refuses everything for a moment."""
            answers[:] = [self._worker.open_client().ask(call.method, call.target, call.body)]
            return answers[0][0] != 409

        wait_until(is_answered)
        return HttpAnswer(*answers[0])


class Names:
    """The checks that fit, for collection."""

    unfit = ConnectorSystem.unfit
    incarnations = False


@pytest.mark.parametrize("check", select_checks(Names()), ids=lambda check: check.__name__)  # type: ignore[arg-type]
def test_conformance(check: Check, connect: Worker) -> None:
    """Each promise holds that can apply to a connector; the simulation keeps the same ones."""
    check(RealSystem(connect))
