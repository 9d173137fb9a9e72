"""A client that is to be killed: `dying.py ENDPOINT held|uploading`. It says when it is that far."""

import sys
import threading

from wire import Client, v1


def for_ever():
    threading.Event().wait()


def held(client, codebase):
    """A sandbox in a lease, as a `with` block of a client holds it."""
    sandbox = client.new_sandbox(codebase)
    signs = client.sandbox.LeaseSandbox(v1.LeaseSandboxRequest(sandbox_id=sandbox, bind=True), timeout=None)
    next(signs)
    print("far", codebase, sandbox, flush=True)
    for _ in signs:
        pass


def uploading(client, codebase):
    def half():
        yield v1.UploadChunk(metadata=v1.UploadChunk.Metadata(codebase_id=codebase, file_path="half"))
        yield v1.UploadChunk(data=b"half")
        print("far", codebase, flush=True)
        for_ever()

    client.codebase.UploadFiles(half(), timeout=None)


if __name__ == "__main__":
    with Client(sys.argv[1]) as caller:
        mine = caller.new_codebase(fleeting=True, whole_txt=b"whole\n")
        {"held": held, "uploading": uploading}[sys.argv[2]](caller, mine)
