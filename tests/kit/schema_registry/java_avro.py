"""Avro's own library for Java, which Spark brings: what it takes for a schema, and what its readers
read of what its writers write. Shorter than a module should be, because only claims about Avro need
it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import py4j.java_gateway
import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError, get_return_value

from kafkaform.sandbox.versions import find_java


class JavaAvro:
    """gateway: of a process with the library."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._avro = gateway.jvm.org.apache.avro
        self._bytes = gateway.jvm.java.io.ByteArrayOutputStream

    def parse(self, text: str) -> Any:
        """The schema. Raises ValueError with the reason of the library."""
        try:
            return self._avro.Schema.Parser().parse(text)
        except Py4JJavaError as error:
            raise ValueError(str(error.java_exception.getMessage())) from None

    def write(self, text: str, **values: Any) -> bytes:
        """A record with these fields, written with a schema. An enum is a text."""
        schema = self.parse(text)
        decoder = self._avro.io.DecoderFactory.get().jsonDecoder(schema, json.dumps(values))
        record = self._avro.generic.GenericDatumReader(schema).read(None, decoder)
        out = self._bytes()
        encoder = self._avro.io.EncoderFactory.get().binaryEncoder(out, None)
        self._avro.generic.GenericDatumWriter(schema).write(record, encoder)
        encoder.flush()
        return bytes(out.toByteArray())

    def read(self, data: bytes, written: str, wanted: str) -> str:
        """The record as JSON, read with another schema than it was written with. Raises
        ValueError."""
        reader = self._avro.generic.GenericDatumReader(self.parse(written), self.parse(wanted))
        decoder = self._avro.io.DecoderFactory.get().binaryDecoder(bytearray(data), None)
        try:
            return str(reader.read(None, decoder).toString())
        except Py4JJavaError as error:
            raise ValueError(str(error.java_exception.getMessage())) from None


@contextmanager
def run_java_avro() -> Iterator[JavaAvro]:
    """Start a process with the library, and end it. A Spark session of the same Python process has
    replaced how py4j reads answers, and would ask this process for Spark's classes."""
    jars = Path(pyspark.__file__).parent / "jars"
    names = ("avro-1", "jackson-", "slf4j-api", "commons-")
    path = ":".join(str(jar) for jar in jars.iterdir() if jar.name.startswith(names))
    port, token = launch_gateway(
        classpath=path, die_on_exit=True, java_path=str(find_java()), enable_auth=True
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        with mock.patch.object(py4j.java_gateway, "get_return_value", get_return_value):
            yield JavaAvro(gateway)
    finally:
        gateway.shutdown()
