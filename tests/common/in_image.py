"""The same tests for both runtimes. With RINGFENCE_TEST_IMAGE, every sandbox that a test makes over gRPC
without naming an image runs in that one, and tests that are marked `bwrap` are left out."""

import os

import grpc._channel
import grpc.aio._channel

IMAGE = os.environ.get("RINGFENCE_TEST_IMAGE", "")
DOCKER = 2
RUNTIME = "docker" if IMAGE else "bwrap"
"""What sandboxes run in that nobody has chosen anything for."""


def _chosen(request):
    if type(request).__name__ != "CreateSandboxRequest" or request.image or request.runtime == DOCKER:
        return request
    chosen = type(request)()
    chosen.CopyFrom(request)
    chosen.runtime, chosen.image = DOCKER, IMAGE
    return chosen


def _choosing(call):
    return lambda self, request, *args, **kwargs: call(self, _chosen(request), *args, **kwargs)


if IMAGE:
    blocking, waiting = grpc._channel._UnaryUnaryMultiCallable, grpc.aio._channel.UnaryUnaryMultiCallable
    for kind, name in ((blocking, "__call__"), (blocking, "with_call"), (blocking, "future"), (waiting, "__call__")):
        setattr(kind, name, _choosing(getattr(kind, name)))


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if IMAGE and item.get_closest_marker("bwrap")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
