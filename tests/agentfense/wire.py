"""What the client's methods cannot say: our own descriptors, and the details of errors."""

import contextlib
import functools
import pathlib
import tempfile

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc

API = pathlib.Path(__file__).resolve().parents[2] / "api"


@functools.cache
def our_files():
    """Our `.proto` files, compiled, with everything they import."""
    well_known = pathlib.Path(protoc.__file__).with_name("_proto")
    sources = sorted(str(path) for path in (API / "sandbox" / "v1").glob("*.proto"))
    assert sources, f"there are no .proto files in {API}"
    with tempfile.NamedTemporaryFile() as out:
        arguments = [f"-I{API}", f"-I{well_known}", f"--descriptor_set_out={out.name}"]
        code = protoc.main(["protoc", *arguments, "--include_imports", *sources])
        assert code == 0, "our .proto files do not compile"
        return descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out.name).read_bytes())


@functools.cache
def _pool():
    # Not the default pool: the client's descriptors of the same names are in that one.
    pool = descriptor_pool.DescriptorPool()
    for file in our_files().file:
        pool.Add(file)
    return pool


def ours(name, **fields):
    """A message of ours, `sandbox.v1.` left out."""
    found = _pool().FindMessageTypeByName(f"sandbox.v1.{name}")
    return message_factory.GetMessageClass(found)(**fields)


def call_ours(channel, method, request):
    """Calls a method of ours, `WorkspaceService/ReadFile`, that answers with a stream or once."""
    service, _, name = method.partition("/")
    found = _pool().FindServiceByName(f"sandbox.v1.{service}").methods_by_name[name]
    answer = message_factory.GetMessageClass(found.output_type)
    kind = channel.unary_stream if found.server_streaming else channel.unary_unary
    call = kind(
        f"/sandbox.v1.{method}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=answer.FromString,
    )
    made = call(request, timeout=20)
    return list(made) if found.server_streaming else made


@contextlib.contextmanager
def refused(code, reason=None, text=None):
    """Expects a call to fail with this gRPC code and this stable code of `api/errors.json`."""
    with pytest.raises(grpc.RpcError) as caught:
        yield caught
    error = caught.value
    assert error.code() is code, error.details()
    if reason is not None:
        assert info_of(error).reason == reason
    if text is not None:
        assert text in error.details()
    assert_no_host_path(error.details())


def info_of(error):
    """The machine-readable part of an error."""
    trailers = {each.key: each.value for each in error.trailing_metadata() or ()}
    assert "grpc-status-details-bin" in trailers, "an error without details"
    status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    info = error_details_pb2.ErrorInfo()
    assert any(detail.Unpack(info) for detail in status.details), "details without ErrorInfo"
    return info


def assert_no_host_path(text):
    for place in ("/tmp/ringfence-", "/var/lib", "/proc/", "/sys/"):
        assert place not in text
