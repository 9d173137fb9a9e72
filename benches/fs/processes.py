"""Running commands and servers so that none outlives the benchmark."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Optional

PR_SET_PDEATHSIG = 1
# Before other programs of the machine, which would otherwise decide the figures.
PRIORITY = -15
_libc = ctypes.CDLL(None, use_errno=True)


class CommandFailed(Exception):
    """A command ended with an error or did not end in time."""


class TimedOut(CommandFailed):
    """A command did not end in time."""


def go_first() -> None:
    """Raise the priority of this process and of all that it starts."""
    os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)


def clean_environment(extra: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """The caller's environment without what would make two runs differ.

    Personal git settings are left out, and ownership is not checked: a variant may show
    other owners than the one who runs the benchmark.
    """
    environment = dict(os.environ)
    environment.update(
        PATH=os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin",
        LC_ALL="C",
        GIT_CONFIG_GLOBAL="/dev/null",
        GIT_CONFIG_NOSYSTEM="1",
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0="safe.directory",
        GIT_CONFIG_VALUE_0="*",
    )
    environment.update(extra or {})
    return environment


def missing(*programs: str) -> List[str]:
    """Those of `programs` that cannot be found."""
    path = clean_environment()["PATH"]
    return [program for program in programs if shutil.which(program, path=path) is None]


def run(
    command: List[str],
    *,
    cwd: Optional[Path] = None,
    env: Optional[Dict[str, str]] = None,
    timeout: float = 600,
) -> str:
    """Run a command to its end and return its standard output.

    It gets a process group of its own, so that a compiler started by make dies with make
    when time is up or the benchmark is interrupted.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=clean_environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    _let_group_go_first(process.pid)
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise TimedOut(f"{Path(command[0]).name} did not end within {timeout:.0f} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0:
        raise CommandFailed(f"{Path(command[0]).name}: {_last_line(errors) or process.returncode}")
    return output


def timed(
    command: List[str],
    *,
    cwd: Optional[Path] = None,
    env: Optional[Dict[str, str]] = None,
    timeout: float = 600,
) -> float:
    """Seconds a command takes from start to end."""
    start = time.perf_counter()
    run(command, cwd=cwd, env=env, timeout=timeout)
    return time.perf_counter() - start


class Server:
    """A server in the foreground; the kernel kills it if the benchmark dies."""

    def __init__(
        self, command: List[str], log: Path, takes_input: bool = False, env: Optional[Dict[str, str]] = None
    ) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                env=clean_environment(env),
                stdin=subprocess.PIPE if takes_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        _let_group_go_first(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdout_fd(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def write(self, content: bytes) -> None:
        """To its standard input, which it must take."""
        assert self._process.stdin is not None
        self._process.stdin.write(content)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def last_words(self) -> str:
        """The last line it logged, for the report."""
        return _last_line(self._log.read_text(errors="replace")) or "no message"

    def stop(self, patience: float = 5) -> None:
        """Ask it to clean up and end; kill it if it does not. One that takes input ends with it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        elif self.is_running():
            # It leads a group of its own, and may itself be waiting for the one that does the work.
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(timeout=patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _let_group_go_first(pid: int) -> None:
    """Where the kernel schedules by session, the priority of a process counts only within its own."""
    try:
        Path(f"/proc/{pid}/autogroup").write_text(str(PRIORITY))
    except OSError:
        pass  # not such a kernel, or the process has ended already


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
