"""Messages of the protocol that neither client of the tests has, from the definitions in Kafka's
own jar."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.api_message import ApiMessage

from .java_tools import class_path

FOLDER = "common/message"


def define_messages(api: str, folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """The class of the request of this API; that of its answer is known to the client, too."""
    package = f"messages_of_{api.lower()}"
    (folder / package).mkdir()
    (folder / package / "__init__.py").touch()
    (jar,) = (path for path in class_path() if path.name.startswith("kafka-clients"))
    names = (f"{api}Request", f"{api}Response")
    with zipfile.ZipFile(jar) as opened:
        for name in names:
            text = opened.read(f"{FOLDER}/{name}.json")
            (folder / package / f"{name}.json").write_bytes(text)
    patch.syspath_prepend(folder)
    kinds = [
        type(ApiMessage)(name, (ApiMessage,), {"__module__": __name__}, load_json=package)
        for name in names
    ]
    return kinds[0]
