"""A bill of materials in CycloneDX 1.6 (JSON): what is installed with kafkaform, and which jars it
downloads, each with its hashes and licence."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kafkaform.sandbox.jars import Jar, read_pinned_jars
from kafkaform.sandbox.servers import start
from kafkaform.sandbox.servers.start import list_connect_versions
from kafkaform.sandbox.versions import list_versions
from kafkaform.workflow.fleet.runs import DELTA

from .lock import EXTRAS, EXTRAS_LOCK, list_requirements, project, read_lock

Data = dict[str, Any]
UNSTATED = "see the package"
"""The licence of a package whose metadata does not state one."""


def bill(lock: str) -> Data:
    """The document, equal for equal inputs: it has neither a time nor a number of its own."""
    needed = read_lock(lock)
    packages = needed | read_lock(EXTRAS_LOCK.read_text())
    own = project()
    root = _purl("pypi", str(own["name"]), str(own["version"]))
    parts = [
        _package(name, *found) | ({} if name in needed else {"scope": "optional"})
        for name, found in sorted(packages.items())
    ]
    jars = [_jar(jar) for jar in _jars()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": own["name"],
                "version": own["version"],
                "purl": root,
                "licenses": [{"expression": own["license"]}],
            }
        },
        "components": [part for part in parts if part["bom-ref"] != root] + jars,
        "dependencies": list(_dependencies(packages, str(own["name"]), root, jars)),
    }


def text(lock: str) -> str:
    return json.dumps(bill(lock), indent=1, sort_keys=True) + "\n"


def _package(name: str, version: str, hashes: Iterable[str]) -> Data:
    purl = _purl("pypi", name, version)
    found: Data = {"type": "library", "bom-ref": purl, "name": name, "version": version}
    found["purl"] = purl
    found["licenses"] = [_license(name)]
    # Each release has a file for each platform: which one is installed, the platform decides.
    found["externalReferences"] = [
        {
            "type": "distribution",
            "url": purl,
            "hashes": [{"alg": "SHA-256", "content": one} for one in sorted(hashes)],
        }
    ]
    return found


def _license(name: str) -> Data:
    """As the installed package says it: an expression of SPDX, or a name."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        return {"license": {"name": UNSTATED}}
    if about.get("License-Expression"):
        return {"expression": about["License-Expression"]}
    told = [c for c in about.get_all("Classifier", []) if c.startswith("License ::")]
    short = (about.get("License") or "").strip().splitlines()
    name = told[0].split(" :: ")[-1] if told else (short or [UNSTATED])[0]
    return {"license": {"name": name}}


def _jars() -> tuple[Jar, ...]:
    brokers = [jar for each in list_versions() for jar in read_pinned_jars(each)]
    workers = [jar for each in list_connect_versions() for jar in start.read_pinned_jars(each)]
    found = (*brokers, *workers, start.read_pinned_archive().jar, *DELTA)
    return tuple({jar.coordinate: jar for jar in found}.values())


def _jar(jar: Jar) -> Data:
    """Jars are those of Kafka's distribution, of Apicurio Registry (an archive) and of Delta Lake:
    NOTICE and their own files say their licences."""
    purl = f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}"
    purl += f"?classifier={jar.classifier}" if jar.classifier else ""
    purl += f"&type={jar.packaging}" if jar.packaging != "jar" else ""
    return {
        "type": "library",
        "bom-ref": purl,
        "group": jar.group,
        "name": jar.artifact,
        "version": jar.version,
        "purl": purl,
        "scope": "optional",
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
        "licenses": [{"license": {"name": "see META-INF of the jar"}}],
    }


def _dependencies(
    packages: Mapping[str, tuple[str, object]], own: str, root: str, jars: Iterable[Data]
) -> Iterator[Data]:
    refs = {name: _purl("pypi", name, found[0]) for name, found in packages.items()}
    direct = {
        canonicalize_name(one.name): one.extras
        for one in map(Requirement, list_requirements(EXTRAS))
    }
    yield {
        "ref": root,
        "dependsOn": sorted({refs[n] for n in direct} | {jar["bom-ref"] for jar in jars}),
    }
    for name in sorted(packages):
        if refs[name] != root:
            yield {
                "ref": refs[name],
                "dependsOn": sorted(_needed(name, direct.get(name, ()), refs)),
            }


def _needed(name: str, extras: Iterable[str], refs: Mapping[str, str]) -> Iterator[str]:
    try:
        wanted = map(Requirement, requires(name) or ())
    except PackageNotFoundError:
        return
    for one in wanted:
        key = canonicalize_name(one.name)
        marker = one.marker
        if key in refs and (
            marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))
        ):
            yield refs[key]


def _purl(kind: str, name: str, version: str) -> str:
    return f"pkg:{kind}/{canonicalize_name(name)}@{version}"
