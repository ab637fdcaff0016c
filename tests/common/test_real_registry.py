"""Our client of registries and a real one agree on the REST contract."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.common.apicurio import apicurio
from tests.common.test_encodings import NEWER, SCHEMA, TEXT

from streamgraft_common.encodings.avro import AvroCodec
from streamgraft_common.encodings.registry import Registry, RegistryError, UnknownSchema, unframed

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with apicurio(tmp_path_factory.mktemp("registry")) as found:
        yield found


def ask(method: str, url: str, body: Any) -> None:
    """Ask for what our client never does."""
    request = urllib.request.Request(url, json.dumps(body).encode(), method=method)
    request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
    urllib.request.urlopen(request, timeout=10).close()


def test_schemas_are_registered_once_and_found(url: str) -> None:
    first = Registry(url).register("orders-value", json.dumps(SCHEMA))
    assert Registry(url).register("orders-value", json.dumps(SCHEMA)) == first
    newer = Registry(url).register("orders-value", json.dumps(NEWER))
    assert newer != first
    assert Registry(url).schema(first) == SCHEMA
    assert Registry(url).schema(newer) == NEWER


def test_a_writer_with_a_newer_schema_is_read(url: str) -> None:
    writer = AvroCodec(json.dumps(NEWER), Registry(url), "evolving-value")
    value = writer.encode(json.dumps({**json.loads(TEXT), "more": 1}))
    reader = AvroCodec(json.dumps(SCHEMA), Registry(url), "other-value")
    assert reader.decode(value) == json.loads(TEXT)
    assert Registry(url).schema(unframed(value)[0]) == NEWER


def test_subjects_with_any_letters(url: str) -> None:
    number = Registry(url).register("a/b c+é-value", json.dumps(SCHEMA))
    assert Registry(url).schema(number) == SCHEMA


def test_an_id_that_nobody_registered_is_unknown(url: str) -> None:
    with pytest.raises(UnknownSchema, match="no such schema"):
        Registry(url).schema(2**31 - 1)


def test_what_is_no_avro_schema_is_unknown(url: str) -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    properties = {"a": {"type": "string"}}
    text = json.dumps({"$schema": draft, "type": "object", "properties": properties})
    ask("POST", f"{url}/subjects/json-value/versions", {"schemaType": "JSON", "schema": text})
    with urllib.request.urlopen(f"{url}/subjects/json-value/versions/1", timeout=10) as answer:
        number = json.load(answer)["id"]
    with pytest.raises(UnknownSchema, match="no Avro schema"):
        Registry(url).schema(number)


def test_an_incompatible_schema_is_refused_with_the_registry_s_reason(url: str) -> None:
    Registry(url).register("strict-value", json.dumps(SCHEMA))
    ask("PUT", f"{url}/config/strict-value", {"compatibility": "BACKWARD"})
    fields = [*SCHEMA["fields"], {"name": "more", "type": "int"}]  # no default
    with pytest.raises(RegistryError, match=r"strict-value/versions: 409 .*ncompatible"):
        Registry(url).register("strict-value", json.dumps({**SCHEMA, "fields": fields}))
