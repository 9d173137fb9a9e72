"""Runs the tests of a suite apart from others: `apart.py [--with-network] COMMAND...`.

Suites that run beside each other look for servers on the same ports, so each has a loopback of its own, unless it
needs the network or is not run by root. And what is started in the background ignores
signals that some tests are about.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
APART = "RINGFENCE_TESTS_APART"


def leave():
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot have a network of its own")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))


def main(with_network, command):
    if os.geteuid() == 0 and not with_network and APART not in os.environ:
        leave()
        os.environ[APART] = "1"
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    if sys.argv[1] == "--with-network":
        main(True, sys.argv[2:])
    main(False, sys.argv[1:])
