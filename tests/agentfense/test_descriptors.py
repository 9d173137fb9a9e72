"""Our API has everything that the published client's has, as it has it.

A field with another number would not fail loudly: it would be left out of what the client sees.
"""

import pytest
from agentfense._gen import codebase_pb2, common_pb2, sandbox_pb2
from google.protobuf import descriptor_pb2

from wire import our_files

THEIRS = [common_pb2, codebase_pb2, sandbox_pb2]


def facts(file):
    """Everything of a file that a client can depend on, by full name."""
    found = {}
    for enum in file.enum_type:
        found.update(enum_facts(file.package, enum))
    for message in file.message_type:
        found.update(message_facts(file.package, message))
    for service in file.service:
        for method in service.method:
            streams = (method.client_streaming, method.server_streaming)
            name = f"{file.package}.{service.name}/{method.name}"
            found[name] = (method.input_type, method.output_type, streams)
    return found


def message_facts(scope, message):
    name = f"{scope}.{message.name}"
    found = {name: "message"}
    for field in message.field:
        oneof = (
            message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
        )
        found[f"{name}.{field.name}"] = (
            field.number,
            field.type,
            field.label,
            field.type_name,
            json_name(field),
            oneof,
            field.proto3_optional,
        )
    for nested in message.nested_type:
        found.update(message_facts(name, nested))
    for enum in message.enum_type:
        found.update(enum_facts(name, enum))
    return found


def enum_facts(scope, enum):
    values = {f"{scope}.{enum.name}.{value.name}": value.number for value in enum.value}
    return {f"{scope}.{enum.name}": "enum", **values}


def json_name(field):
    """What the compiler writes, or what it would: files inside generated code leave it out."""
    if field.json_name:
        return field.json_name
    first, *rest = field.name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def their_facts():
    found = {}
    for module in THEIRS:
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        found.update(facts(file))
    return found


def our_facts():
    found = {}
    for file in our_files().file:
        found.update(facts(file))
    return found


@pytest.mark.parametrize("name", sorted(their_facts()))
def test_ours_has_it_too(name):
    assert our_facts().get(name) == their_facts()[name]


def test_what_is_ours_alone_cannot_meet_a_later_field_of_theirs():
    theirs = their_facts()
    for name, fact in our_facts().items():
        holder = name.rpartition(".")[0]
        if theirs.get(holder) == "message" and name not in theirs and isinstance(fact, tuple):
            assert fact[0] >= 100, name
