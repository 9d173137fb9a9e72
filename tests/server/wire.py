"""The services of `api/`, compiled for these tests, and what errors look like on both ways."""

import contextlib
import importlib
import pathlib
import sys
import tempfile
import types

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_tools import protoc

API = pathlib.Path(__file__).resolve().parents[2] / "api"
NAMES = ["common", "codebase", "sandbox", "process", "workspace", "server"]

_made = tempfile.TemporaryDirectory(prefix="ringfence-stubs-")
sys.path.insert(0, _made.name)


def _compile():
    well_known = pathlib.Path(importlib.import_module("grpc_tools").__file__).parent / "_proto"
    files = [f"sandbox/v1/{name}.proto" for name in NAMES]
    arguments = ["protoc", f"-I{API}", f"-I{well_known}", f"--python_out={_made.name}",
                 f"--grpc_python_out={_made.name}", *files]
    if protoc.main(arguments) != 0:
        raise RuntimeError("api/ cannot be compiled")


_compile()
_messages = [importlib.import_module(f"sandbox.v1.{name}_pb2") for name in NAMES]
_services = [importlib.import_module(f"sandbox.v1.{name}_pb2_grpc") for name in NAMES]


def _all(modules):
    return {name: value for module in modules for name, value in vars(module).items()}


v1 = types.SimpleNamespace(**_all(_messages))
"""Every message and enum."""

_stubs = {name[: -len("ServiceStub")].lower(): value
          for name, value in _all(_services).items() if name.endswith("ServiceStub")}


class Client:
    """One connection and all services on it: `client.sandbox.CreateSandbox(...)`."""

    def __init__(self, endpoint, token=None, roots=None):
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        options = [("grpc.max_receive_message_length", 64 << 20)]
        if endpoint.startswith("unix:"):
            # grpc would name the socket's path as the host, which no host name can be.
            options.append(("grpc.default_authority", "localhost"))
        if roots is None:
            self.channel = grpc.insecure_channel(endpoint, options=options)
        else:
            self.channel = grpc.secure_channel(
                endpoint, grpc.ssl_channel_credentials(roots), options=options)
        for name, stub in _stubs.items():
            setattr(self, name, _WithMetadata(stub(self.channel), self.metadata))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def new_codebase(self, fleeting=False, **files):
        """A codebase of these files; `__` in a name stands for a slash, `_` for a dot."""
        made = self.codebase.CreateCodebase(
            v1.CreateCodebaseRequest(name="test", owner_id="tests", fleeting=fleeting))
        for name, content in files.items():
            self.upload(made.id, name.replace("__", "/").replace("_", "."), content)
        return made.id

    def upload(self, codebase_id, path, content):
        begin = v1.UploadChunk.Metadata(codebase_id=codebase_id, file_path=path)
        chunks = [v1.UploadChunk(metadata=begin)]
        chunks += [v1.UploadChunk(data=content[at:at + 65536])
                   for at in range(0, len(content), 65536)]
        return self.codebase.UploadFiles(iter(chunks))

    def download(self, codebase_id, path):
        asked = v1.DownloadFileRequest(codebase_id=codebase_id, file_path=path)
        return b"".join(chunk.data for chunk in self.codebase.DownloadFile(asked))

    def new_sandbox(self, codebase_id, preset="full-access", **fields):
        asked = v1.CreateSandboxRequest(codebase_id=codebase_id, preset=preset, start=True, **fields)
        return self.sandbox.CreateSandbox(asked).id

    def run(self, sandbox_id, command, **fields):
        return self.sandbox.Exec(v1.ExecRequest(sandbox_id=sandbox_id, command=command, **fields))

    def destroy_all(self):
        for sandbox in self.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes:
            self.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox.id))


class _WithMetadata:
    """A stub whose calls carry the credentials, and never wait for ever."""

    def __init__(self, stub, metadata):
        self._stub, self._metadata = stub, metadata

    def __getattr__(self, name):
        call = getattr(self._stub, name)

        def with_metadata(*args, timeout=60, **kwargs):
            return call(*args, metadata=self._metadata, timeout=timeout, **kwargs)

        with_metadata.future = lambda *args, **kwargs: call.future(
            *args, metadata=self._metadata, **kwargs)
        return with_metadata


class Refused:
    """What a call was refused with."""

    code = details = status = message = None


@contextlib.contextmanager
def refused():
    """Fails unless the call in it is refused; says how."""
    how = Refused()
    try:
        yield how
    except grpc.RpcError as error:
        how.status, how.message = error.code(), error.details()
        how.code, how.details = info_of(error)
    else:
        raise AssertionError("the call was not refused")


def info_of(error):
    """The stable code and the details."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    return info.reason, dict(info.metadata)
    return None, {}
