"""Runs a command on a loopback of its own: `apart.py COMMAND...`.

Suites that run beside each other look for servers on the same ports. Who is not root shares them.
"""

import ctypes
import fcntl
import os
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


if __name__ == "__main__":
    if os.geteuid() == 0 and APART not in os.environ:
        leave()
        os.environ[APART] = "1"
    os.execvp(sys.argv[1], sys.argv[1:])
