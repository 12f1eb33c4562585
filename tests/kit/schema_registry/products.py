"""Registries of other products: the simulated registry, and a table of what each of them answers
otherwise.

Sources: confluentinc/schema-registry at 794611bd (`Errors.java`, `Mode.java`, `ModeResource.java`),
Apicurio/apicurio-registry at 2.6.9.Final and b40e0173 (`ModeResourceImpl`, `ConfigResourceImpl`,
`CompatibilityResourceImpl`, `SubjectsResourceImpl`), Aiven-Open/karapace at 3bbc1f8d
(`api/routers`, `controller.py`), redpanda-data/redpanda at 1c6cff34 (`schema_registry.json`,
`handlers.cc`, `error.cc`) and redpanda-data/docs at 3e7b662c. They were read, and not tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from kafkaform.provider.http.exchange import Call, HttpAnswer, read_error_code
from kafkaform_schema_registry.memory import SimulatedRegistry


class ProductRegistry(SimulatedRegistry):
    """A registry that answers as one product does."""

    def __init__(self, product: str, registry_id: str = "simulated") -> None:
        apicurio, contracts = product.startswith("apicurio"), product == "confluent"
        properties = product == "redpanda"
        super().__init__(registry_id, apicurio=apicurio, contracts=contracts, properties=properties)
        self.level = "BACKWARD"
        self._differences = PRODUCTS[product]

    def answer(self, call: Call, user: str = "admin") -> HttpAnswer:
        request = f"{call.method} {call.path}"
        for pattern, answer in self._differences.items():
            if re.fullmatch(pattern, request):
                return answer(self, call)
        return super().answer(call, user)


Answer = Callable[[ProductRegistry, Call], HttpAnswer]


def _refuse(status: int, message: str) -> Answer:
    return lambda *_: HttpAnswer(status, {"message": message})


def _register_with_new_code(registry: ProductRegistry, call: Call) -> HttpAnswer:
    """Older versions of Confluent's registry repeat the status as the code."""
    answer = SimulatedRegistry.answer(registry, call)
    if read_error_code(answer) != 409:
        return answer
    return HttpAnswer(409, {**answer.body, "error_code": 40901})


def _show_mode(registry: ProductRegistry, _: Call) -> HttpAnswer:
    """The mode of the registry, also for a subject."""
    return HttpAnswer(200, {"mode": registry.mode})


def _show_mode_of_subject(registry: ProductRegistry, call: Call) -> HttpAnswer:
    """The mode of the registry, for a subject that exists."""
    return _refuse_missing(registry, call) or _show_mode(registry, call)


def _read_level_of_subject(registry: ProductRegistry, call: Call) -> HttpAnswer:
    return _refuse_missing(registry, call) or SimulatedRegistry.answer(registry, call)


def _refuse_missing(registry: ProductRegistry, call: Call) -> HttpAnswer | None:
    subject = unquote(call.path.rpartition("/")[2])
    if registry.subjects.list_versions(subject, deleted=True):
        return None
    return HttpAnswer(404, {"error_code": 40401, "message": f"Subject '{subject}' not found."})


def _set_usual_mode(registry: ProductRegistry, call: Call) -> HttpAnswer:
    body: Mapping[str, Any] = call.body
    if body["mode"] not in ("READWRITE", "READONLY", "IMPORT"):
        return HttpAnswer(422, {"error_code": 42204, "message": "Invalid mode."})
    return SimulatedRegistry.answer(registry, call)


_LACKING: Mapping[str, Answer] = {
    "GET /v1/metadata/id": _refuse(404, "Not Found"),
    "POST /compatibility/subjects/[^/]+/versions": _refuse(404, "Not Found"),
}

PRODUCTS: Mapping[str, Mapping[str, Answer]] = {
    "confluent": {"POST /subjects/[^/]+/versions": _register_with_new_code},
    "apicurio 2": {},
    "apicurio 3": {"GET /mode(/[^/]+)?": _show_mode},
    "karapace": {
        **_LACKING,
        "GET /mode": _show_mode,
        "GET /mode/[^/]+": _show_mode_of_subject,
        "(PUT|DELETE) /mode.*": _refuse(405, "Method Not Allowed"),
        "GET /config/[^/]+": _read_level_of_subject,
    },
    "redpanda": {**_LACKING, "PUT /mode.*": _set_usual_mode},
}
"""Product -> a regular expression for method and path -> what it answers instead."""
