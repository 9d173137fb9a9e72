"""The blocking client: ours, or the published one."""

import time

from timing import BUILTIN, PRESET, RUN, answer, lives, repeated, timed


class Blocking:
    def __init__(self, package, options):
        self._package = package
        self._options = options
        self._sandbox = None
        self._session = None

    def orders(self):
        return {
            "open": self.open,
            "life": self.life,
            "run": self.run,
            "session": self.session,
            "session-open": self.session_open,
            "start": self.start,
            "files": self.files,
            "close": self.close,
        }

    def open(self, base):
        """A sandbox and a session that stay."""
        if not self._options:
            self._check_private()
        self._sandbox = self._made(base)
        self._sandbox.run(RUN).raise_on_error()
        self._session = self._sandbox.session()
        self._session.exec(BUILTIN).raise_on_error()

    def close(self):
        sandbox, self._sandbox, self._session = self._sandbox, None, None
        if sandbox is not None:
            sandbox.destroy()

    def life(self, base, count):
        return lives([self._life(base) for _ in range(count)])

    def _life(self, base):
        begin = time.perf_counter()
        with self._made(base) as sandbox:
            sandbox.run(RUN)
            usable = time.perf_counter()
        return begin, usable, time.perf_counter()

    def run(self, count):
        return answer(run=repeated(lambda: self._sandbox.run(RUN), count))

    def session(self, count):
        return answer(session=repeated(lambda: self._session.exec(BUILTIN), count))

    def session_open(self, count):
        micros = []
        for _ in range(count):
            taken, session = timed(self._sandbox.session)
            micros.append(taken)
            session.close()
        return answer(open=micros)

    def start(self, base):
        """All files of a directory, and a sandbox on them."""
        micros, sandbox = timed(lambda: self._made(base))
        sandbox.destroy()
        return answer(start=[micros])

    def files(self, size, count):
        """Uploads and downloads of one file each, of contents the server has not seen."""
        with self._package.SandboxClient(**self._options) as client:
            codebase = client.create_codebase(name="bench", owner_id="bench").id
            contents = {f"{number}.bin": self._content(number, size) for number in range(count)}
            up = [timed(lambda: client.upload_file(codebase, *file))[0] for file in contents.items()]
            down = [timed(lambda: client.download_file(codebase, name)) for name in contents]
            client.delete_codebase(codebase)
        if [received for _, received in down] != list(contents.values()):
            raise ValueError("what was downloaded is not what was uploaded")
        return answer(upload=up, download=[micros for micros, _ in down])

    def _check_private(self):
        """Without an address, a server on the usual port would be asked instead."""
        with self._package.SandboxClient() as client:
            if not client.info().embedded:
                raise RuntimeError("there is a server on localhost:9000, and a private one was meant")

    def _content(self, number, size):
        text = f"{self._package.__name__} {time.time_ns()} {number}\n"
        return (text * (size // len(text) + 1)).encode()[:size]

    def _made(self, base):
        return self._package.Sandbox.from_local(base, preset=PRESET, **self._options)
