"""The client for asyncio, and many sandboxes at once."""

import asyncio
import time
from pathlib import Path

from timing import BUILTIN, PRESET, RUN, answer


class Asynchronous:
    """Each order is one run of a loop that stays, as do the sandbox and the session."""

    def __init__(self, package, options):
        self._package = package
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._sandbox = None
        self._session = None

    def orders(self):
        blocking = {
            "async-open": self._open,
            "async-run": self._run,
            "async-session": self._session_exec,
            "async-close": self._close,
            "crowd": self._crowd,
            "crowd-memory": self._crowd_memory,
        }
        return {name: self._waited(work) for name, work in blocking.items()}

    def close(self):
        self._loop.run_until_complete(self._close())
        self._loop.close()

    def _waited(self, work):
        return lambda **details: self._loop.run_until_complete(work(**details))

    async def _open(self, base):
        self._sandbox = await self._made(base)
        (await self._sandbox.run(RUN)).raise_on_error()
        self._session = await self._sandbox.session()
        (await self._session.exec(BUILTIN)).raise_on_error()

    async def _close(self):
        sandbox, self._sandbox, self._session = self._sandbox, None, None
        if sandbox is not None:
            await sandbox.destroy()

    async def _run(self, count):
        return answer(run=await repeated(lambda: self._sandbox.run(RUN), count))

    async def _session_exec(self, count):
        return answer(session=await repeated(lambda: self._session.exec(BUILTIN), count))

    async def _crowd(self, base, size, count):
        """Sandboxes that are made, used and ended, all at once."""
        return answer(crowd=await repeated(lambda: self._lives(base, size), count))

    async def _lives(self, base, size):
        await asyncio.gather(*(self._life(base) for _ in range(size)))

    async def _life(self, base):
        async with await self._made(base) as sandbox:
            await sandbox.run(RUN)

    async def _crowd_memory(self, base, size):
        """Bytes, before and while so many sandboxes are open and have been used."""
        before = resident_bytes()
        sandboxes = await asyncio.gather(*(self._made(base) for _ in range(size)))
        await asyncio.gather(*(sandbox.run(RUN) for sandbox in sandboxes))
        during = resident_bytes()
        await asyncio.gather(*(sandbox.destroy() for sandbox in sandboxes))
        return {"resident": {"before": before, "during": during}}

    def _made(self, base):
        return self._package.AsyncSandbox.from_local(base, preset=PRESET, **self._options)


async def repeated(work, count):
    micros = []
    for _ in range(count):
        begin = time.perf_counter()
        await work()
        micros.append((time.perf_counter() - begin) * 1e6)
    return micros


def resident_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024
