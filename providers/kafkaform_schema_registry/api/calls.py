"""The calls of the API that registries have in common.

Source: https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaform.provider.http.exchange import Call, join_path

from ..formats.normal_form import FORMATS

OWN = {"defaultToGlobal": "false"}
"""Only what the subject itself has."""
VERBOSE = {"verbose": "true"}

IDENTIFY = Call("GET", "/v1/metadata/id", reads=True)
LIST_SUBJECTS = Call("GET", "/subjects", reads=True)


def read_version(subject: str, version: int | None) -> Call:
    """One version of a subject, None for the latest."""
    name = "latest" if version is None else str(version)
    return Call("GET", join_path("subjects", subject, "versions", name), reads=True)


def list_versions(subject: str) -> Call:
    return Call("GET", join_path("subjects", subject, "versions"), reads=True)


def list_referring(subject: str, version: int) -> Call:
    """Ids of the schemas that refer to a version."""
    path = join_path("subjects", subject, "versions", str(version), "referencedby")
    return Call("GET", path, reads=True)


def list_uses(id: int) -> Call:
    """Subjects and versions with the content of an id."""
    return Call("GET", join_path("schemas", "ids", str(id), "versions"), reads=True)


def look_up(payload: Mapping[str, Any]) -> Call:
    """Whether a subject has this very schema. payload: that of a step."""
    return Call("POST", join_path("subjects", payload["subject"]), make_body(payload), reads=True)


def check_all(payload: Mapping[str, Any]) -> Call:
    """Whether a subject could have this schema beside the versions that its level looks at."""
    path = join_path("compatibility", "subjects", payload["subject"], "versions")
    return Call("POST", path, make_body(payload), VERBOSE, reads=True)


def check_latest(payload: Mapping[str, Any]) -> Call:
    """The same for the latest version alone: what older registries have."""
    path = join_path("compatibility", "subjects", payload["subject"], "versions", "latest")
    return Call("POST", path, make_body(payload), VERBOSE, reads=True)


def register(payload: Mapping[str, Any]) -> Call:
    """Without `normalize`: the registry would keep another text than the one that was planned."""
    return Call("POST", join_path("subjects", payload["subject"], "versions"), make_body(payload))


def delete_subject(subject: str, *, permanent: bool) -> Call:
    query = {"permanent": "true"} if permanent else {}
    return Call("DELETE", join_path("subjects", subject), query=query)


def read_setting(name: str, subject: str | None) -> Call:
    """What the subject itself has. name: `config` or `mode`; subject: None for the registry's."""
    if subject is None:
        return Call("GET", join_path(name), reads=True)
    return Call("GET", join_path(name, subject), query=OWN, reads=True)


def put_setting(name: str, subject: str | None, body: Mapping[str, str]) -> Call:
    return Call("PUT", _setting_path(name, subject), body)


def delete_setting(name: str, subject: str) -> Call:
    return Call("DELETE", _setting_path(name, subject))


def make_body(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a step as registries want it."""
    kind = FORMATS[payload["format"]].registry_name
    body: dict[str, Any] = {"schema": payload["schema"]}
    # Registries before 5.5 know Avro only, and refuse what they do not know.
    if kind != "AVRO":
        body["schemaType"] = kind
    if payload["references"]:
        body["references"] = list(payload["references"])
    return body


def _setting_path(name: str, subject: str | None) -> str:
    return join_path(name) if subject is None else join_path(name, subject)
