"""Drives `ringfence shell` on a terminal, as a person would: shell.py RINGFENCE DIR."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time


class Person:
    def __init__(self, *words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(words[0], words)
        self.unread = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, text):
        """Reads until the text is shown, and returns what was shown with it."""
        deadline = time.monotonic() + 20
        while text.encode() not in self.unread:
            ready, _, _ = select.select([self.fd], [], [], deadline - time.monotonic())
            assert ready, f"{text!r} is not shown: {self.unread!r}"
            self.unread += os.read(self.fd, 4096)
        shown, _, self.unread = self.unread.partition(text.encode())
        return shown.decode() + text

    def ending(self):
        try:
            while chunk := os.read(self.fd, 4096):
                self.unread += chunk
        except OSError:
            pass  # the terminal is gone
        return self.unread.decode(), os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main(ringfence, directory):
    person = Person(ringfence, "shell", "--preset", "agent-safe", directory)
    person.resize(40, 100)
    person.wait_for("$ ")
    person.type("echo size $(stty size) on $(tty)\n")
    person.wait_for("size 40 100 on /dev/pts/0")
    # What prints has the terminal: keys pressed before that would be for the shell.
    # Ctrl-C ends what runs, not the shell.
    person.type("sh -c 'echo no''w; exec sleep 1000'\n")
    person.wait_for("now\r\n")
    person.type("\x03")
    person.wait_for("^C")
    person.wait_for("$ ")
    # Ctrl-Z stops it, and it can be continued.
    person.type("sh -c 'echo aga''in; exec sleep 1001'\n")
    person.wait_for("again\r\n")
    person.type("\x1a")
    person.wait_for("Stopped")
    person.wait_for("$ ")
    person.type("bg\n")
    person.wait_for("[1]+ sh -c")
    person.type("jobs; kill %1\n")
    person.wait_for("Running")
    person.wait_for("$ ")
    person.resize(50, 120)
    person.type("until [ \"$(stty size)\" = '50 120' ]; do :; done; echo resi''zed\n")
    person.wait_for("resized")
    person.type("mkdir output && echo x > output/f; cat .env\n")
    person.wait_for("No such file")
    person.type("exit 5\n")
    # A person is asked what becomes of the changes.
    shown = person.wait_for("discard them? [a/K/d] ")
    assert "refused by the policy" in shown and "lookup /.env" in shown, shown
    assert "output/f" in shown, shown
    person.type("a\n")
    rest, code = person.ending()
    assert "changes applied" in rest, rest
    assert code == 5, code
    with open(os.path.join(directory, "output/f"), encoding="ascii") as applied:
        assert applied.read() == "x\n"


main(*sys.argv[1:])
