"""Short, because another tool prescribes its form: schemas as resources of Terraform.

The provider is `cultureamp/schemaregistry`. Source: terraform-provider-schemaregistry
`internal/provider/resource_schema.go`: the import id is the subject, of the characters of a topic
name; the text is JSON, which protobuf is not; a level that is left out stays as it is.
"""

from __future__ import annotations

import re

from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.contract import Exporter, ForeignResource

from .formats.normal_form import FORMATS
from .kinds import schema

_SUBJECT = re.compile(r"[A-Za-z0-9._-]{1,249}")
RESOURCE = "schemaregistry_schema"


def _write(kind: str, live: FrozenMap) -> ForeignResource | str:
    """The latest schema of a subject as a resource."""
    if kind != schema.KIND:
        return f"the provider has no resource for a {kind}, which stays as it is"
    subject = str(live["subject"])
    if live["format"] == "protobuf":
        return "the provider reads every schema as JSON, which protobuf is not"
    if not _SUBJECT.fullmatch(subject):
        return "the provider does not allow this name of a subject"
    arguments: dict[str, Value] = {
        "subject": subject,
        "schema_type": FORMATS[str(live["format"])].registry_name,
        "schema": live["schema"],
    }
    if references := live.get("references"):
        arguments["references"] = references
    return ForeignResource(RESOURCE, FrozenMap(arguments), subject)


EXPORTER = Exporter(
    requirements=FrozenMap(
        schemaregistry=FrozenMap(source="cultureamp/schemaregistry", version=">= 2.0.0")
    ),
    write=_write,
)
