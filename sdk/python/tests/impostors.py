"""What may answer on a port instead of a server that fits."""

import concurrent.futures
import contextlib
import http.server
import socket
import threading

import grpc
from ringfence._wire import methods, v1


class Strict(grpc.GenericRpcHandler):
    """Answers `Info`, and nothing else."""

    def __init__(self, answer):
        self._answer = answer

    def service(self, call):
        if call.method != methods.Info.path:
            return None
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._answer,
            v1.InfoRequest.FromString, v1.InfoResponse.SerializeToString)


@contextlib.contextmanager
def server_that_says(**answer):
    """A gRPC server that introduces itself with these words; yields its address."""
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads, handlers=[Strict(v1.InfoResponse(**answer))])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait()


@contextlib.contextmanager
def http_server():
    """A web server; yields its address."""
    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "127.0.0.1:%d" % server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def nobody():
    """A port that is bound, so that nobody else gets it, and at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield "127.0.0.1:%d" % taken.getsockname()[1]


@contextlib.contextmanager
def silent():
    """Takes every caller and never says a word."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield "127.0.0.1:%d" % listening.getsockname()[1]
