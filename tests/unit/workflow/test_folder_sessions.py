"""What one folder of a repository sees of a login that it shares."""

from __future__ import annotations

from typing import Any

from kafkaform.workflow.repository.folders import FolderSession, SharedLook


class Login:
    """A session that counts how often it had to prove its system."""

    context = "the connection"
    proofs = 0

    def prove(self) -> None:
        self.proofs += 1


def test_what_a_provider_asks_past_the_contract_has_to_be_proven() -> None:
    """Each use of the connection needs a proof, also if the readings were proven before."""
    login: Any = Login()
    session = FolderSession(SharedLook(login, ()))
    session.prove()
    assert login.proofs == 0
    for proofs in (1, 2):
        assert session.context == "the connection"
        session.prove()
        session.prove()
        assert login.proofs == proofs


def test_a_system_without_a_connection_has_none() -> None:
    """A simulated one, or one that is asked over HTTP."""
    login: Any = object()
    assert FolderSession(SharedLook(login, ())).context is None
