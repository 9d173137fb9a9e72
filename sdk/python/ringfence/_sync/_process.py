# Made from _async/_process.py by generate.py.
"""Commands in the background."""

from __future__ import annotations

import signal as signals
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Tuple, Union

from .. import _convert as convert
from .._message import message, starting
from .._types import ProcessInfo, ProcessStatus, Seconds
from .._wire import methods, v1
from ..exceptions import InvalidConfigurationError, ProcessExitedError
from ._connection import Connection
from ._streams import LogStream

if TYPE_CHECKING:
    Signal = Union[int, str, signals.Signals]


class Processes(Connection):
    def start_process(
        self,
        sandbox_id: str,
        command: str,
        *,
        session: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        name: Optional[str] = None,
    ) -> "Process":
        """Starts a command that goes on by itself, with a log.

        Args:
            session: begin with the directory and variables of this session, and end with it.
            name: its id; made up if not given.
        """
        channel = self._open()
        request = message(
            v1.StartProcessRequest, sandbox_id=sandbox_id, command=command, session=session or "",
            env=convert.env_out(env), cwd=cwd or "", id=name or "")
        made = channel.unary(methods.StartProcess, request)
        return Process(self, convert.process_in(made))

    def get_process(self, sandbox_id: str, process_id: str) -> ProcessInfo:
        """What is on record about a process."""
        channel = self._open()
        request = message(v1.GetProcessRequest, sandbox_id=sandbox_id, process_id=process_id)
        return convert.process_in(channel.unary(methods.GetProcess, request))

    def list_processes(self, sandbox_id: str) -> List[ProcessInfo]:
        """The background processes of a sandbox, also those that have ended."""
        channel = self._open()
        request = message(v1.ListProcessesRequest, sandbox_id=sandbox_id)
        answer = channel.unary(methods.ListProcesses, request)
        return [convert.process_in(process) for process in answer.processes]

    def kill_process(
        self, sandbox_id: str, process_id: str, signal: "Signal" = signals.SIGTERM
    ) -> ProcessInfo:
        """Sends a signal to a process and all it started."""
        channel = self._open()
        request = message(
            v1.KillProcessRequest,
            sandbox_id=sandbox_id, process_id=process_id, signal=_number(signal))
        return convert.process_in(channel.unary(methods.KillProcess, request))

    def kill_all_processes(self, sandbox_id: str) -> int:
        """Ends all background processes of a sandbox; says how many."""
        channel = self._open()
        request = message(v1.ListProcessesRequest, sandbox_id=sandbox_id)
        return (channel.unary(methods.KillAllProcesses, request)).count

    def process_log(
        self, sandbox_id: str, process_id: str, follow: bool = False, *, offset: int = 0
    ) -> LogStream:
        """What a process has printed."""
        request = message(
            v1.ProcessLogRequest, sandbox_id=sandbox_id, process_id=process_id, follow=follow,
            **starting(offset))
        return LogStream(self._open, methods.ProcessLog, request)

    def wait_process(
        self, request: v1.WaitProcessRequest
    ) -> Tuple[ProcessInfo, str]:
        """Waits for what the request says; also the line of the log it was found in."""
        channel = self._open()
        answer = channel.unary(methods.WaitProcess, request)
        return convert.process_in(answer.process), answer.line.decode(errors="replace")


class Process:
    """A command in the background.

    >>> server = sandbox.start_process("python3 -m http.server 8000")  # doctest: +SKIP
    >>> server.wait_for_port(8000)  # doctest: +SKIP
    """

    def __init__(self, client: Processes, info: ProcessInfo) -> None:
        self._client = client
        self._info = info

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def pid(self) -> int:
        """Its number inside of the sandbox."""
        return self._info.pid

    @property
    def command(self) -> str:
        return self._info.command

    @property
    def info(self) -> ProcessInfo:
        """As it was when it was last asked for."""
        return self._info

    @property
    def status(self) -> ProcessStatus:
        """What it does now."""
        return (self.refresh())._info.status

    @property
    def exit_code(self) -> Optional[int]:
        """None while it runs, as far as is known; `wait()` and `status` ask."""
        return self._info.exit_code

    def refresh(self) -> "Process":
        """Asks the server what it has on record."""
        self._info = self._client.get_process(self._info.sandbox_id, self.id)
        return self

    def logs(self, follow: bool = False, *, offset: int = 0) -> LogStream:
        """What it has printed, line by line; with `follow` until it ends."""
        return self._client.process_log(
            self._info.sandbox_id, self.id, follow, offset=offset)

    def wait_for_log(
        self, text: Optional[str] = None, *, pattern: Optional[str] = None,
        timeout: Optional[Seconds] = 30,
    ) -> str:
        """Waits until a text, or a line that fits a regular expression, is in the log; the line.

        Raises:
            WaitTimeoutError: it did not come in time.
            ProcessExitedError: the process ended first.
        """
        if (text is None) == (pattern is None):
            raise InvalidConfigurationError("say what to wait for: a text or pattern=…")
        wanted = {"pattern": pattern} if text is None else {"text": text}
        return (self._waited(timeout, **wanted))[1]

    def wait_for_port(
        self, port: int, *, path: Optional[str] = None, timeout: Optional[Seconds] = 30
    ) -> None:
        """Waits until something listens on a port inside; with `path`, until HTTP answers there."""
        wanted = message(v1.WaitProcessRequest.Port, port=port, http_path=path or "")
        self._waited(timeout, port=wanted)

    def wait(self, timeout: Optional[Seconds] = None) -> int:
        """Waits for its end; the exit code."""
        self._waited(timeout, exit=True)
        return self._info.exit_code if self._info.exit_code is not None else -1

    def kill(self, signal: "Signal" = signals.SIGTERM) -> None:
        """Sends a signal to it and all it started."""
        self._info = self._client.kill_process(self._info.sandbox_id, self.id, signal)

    def _waited(
        self, timeout: Optional[Seconds], **until: Any
    ) -> Tuple[ProcessInfo, str]:
        request = message(
            v1.WaitProcessRequest, sandbox_id=self._info.sandbox_id, process_id=self.id,
            timeout=convert.duration_out(convert.seconds(timeout)), **until)
        try:
            self._info, line = self._client.wait_process(request)
        except ProcessExitedError as error:
            # The answer says that it ended; how it did is on record.
            error.exit_code = (self.refresh()).exit_code
            raise
        return self._info, line

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self._info.sandbox_id}>"


def _number(signal: "Signal") -> int:
    try:
        return int(signals.Signals[signal] if isinstance(signal, str) else signal)
    except KeyError:
        raise InvalidConfigurationError(f"there is no signal {signal!r}") from None
