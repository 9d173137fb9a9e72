"""Tries to get out, and says for each way whether it leads anywhere.

Called with a JSON object of what there is to look for; prints a JSON object from the name of each
attempt to [whether it got through, what was seen]. Every attempt is made by a child of its own,
ends by itself, and does no harm where it gets through: the same program is run on the host as root
to see that it can tell the difference.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import stat
import struct
import sys

TARGET = json.loads(sys.argv[1])
INIT = TARGET["init"]
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long

ATTEMPTS = {}


def attempt(name):
    def add(function):
        ATTEMPTS[name] = function
        return function

    return add


def syscall(number, *arguments):
    """The result of a raw system call; an OSError if it fails."""
    each = [a if isinstance(a, (bytes, ctypes._SimpleCData, ctypes.Array)) else ctypes.c_long(a)
            if isinstance(a, int) else a for a in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *each)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def allowed(number, *arguments, but=()):
    """True if the call is made, or fails for a reason that comes after the permission (`but`)."""
    try:
        syscall(number, *arguments)
    except OSError as error:
        if error.errno in [getattr(errno, name) for name in but]:
            return True
        raise
    return True


def opens(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags | os.O_CLOEXEC))
    return True


def reads(path):
    with open(path, "rb") as file:
        file.read(1)
    return True


def writes(path, text):
    with open(path, "w") as file:
        file.write(text)
    return True


def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return line.split(":")[1].strip()
    return ""


# Who we are.

@attempt("root user")
def _():
    return 0 in os.getresuid()


@attempt("root group")
def _():
    return 0 in os.getresgid()


@attempt("supplementary groups")
def _():
    return [group for group in os.getgroups() if group != 1000]


for _set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]:
    ATTEMPTS["capabilities " + _set] = lambda s=_set: int(status(s), 16) and status(s)
ATTEMPTS["new privileges"] = lambda: status("NoNewPrivs") != "1"
ATTEMPTS["no seccomp filter"] = lambda: status("Seccomp") != "2"
ATTEMPTS["setuid to root"] = lambda: os.setresuid(0, 0, 0) is None
ATTEMPTS["setgid to root"] = lambda: os.setresgid(0, 0, 0) is None
ATTEMPTS["setgroups"] = lambda: os.setgroups([0]) is None


@attempt("setuid program on a read-only path")
def _():
    return os.popen(TARGET["setuid"] + " -u").read().strip() == "0"


@attempt("setuid program in the workspace")
def _():
    return os.popen("./setuid-id -u").read().strip() == "0"


for _name, _id in TARGET["namespaces"].items():
    ATTEMPTS["namespace " + _name] = lambda n=_name, i=_id: os.readlink("/proc/self/ns/" + n) == i


# What we were given.

@attempt("variables of the host")
def _():
    return TARGET["variable"] in os.environ


@attempt("variables of the host in other processes")
def _():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if TARGET["variable"].encode() in open(f"/proc/{pid}/environ", "rb").read():
                return pid
        except OSError:
            pass
    return False


@attempt("descriptors")
def _():
    return TARGET["descriptors"]


# Mounts and files.

def mounts():
    for line in open("/proc/self/mountinfo"):
        before, after = line.rstrip("\n").split(" - ")
        yield before.split(" ")[4], before.split(" ")[5].split(","), after.split(" ")


OURS = ["/", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libexec", "/proc",
        "/dev", "/run", "/var", "/tmp", "/home/user", "/workspace", "/run/ringfence"]


@attempt("mounts of the host")
def _():
    known = OURS + TARGET["read_only"]
    below = ("/etc", "/dev/", "/proc/", "/run/ringfence/")
    return [at for at, _, _ in mounts() if at not in known and not at.startswith(below)]


@attempt("mounts with setuid")
def _():
    return [at for at, options, _ in mounts() if "nosuid" not in options]


@attempt("mounts with devices")
def _():
    return [at for at, options, _ in mounts()
            if "nodev" not in options and not at.startswith("/dev")]


@attempt("mounts of cgroups")
def _():
    return [at for at, _, kind in mounts() if kind[0].startswith("cgroup")]


def makes(directory):
    path = os.path.join(directory, f"ringfence-probe-{os.getpid()}")
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.unlink(path)
    return True


for _dir in ["/", "/usr", "/usr/bin", "/etc", "/dev", "/lib", "/var/lib", "/root", "/home",
             "/run/ringfence", TARGET["read_only"][0]]:
    ATTEMPTS["write to " + ("a read-only path" if _dir == TARGET["read_only"][0] else _dir)] = \
        lambda d=_dir: makes(d)

ATTEMPTS["read a file of root on a read-only path"] = lambda: reads(TARGET["root_file"])
ATTEMPTS["read /etc/shadow"] = lambda: reads("/etc/shadow")
ATTEMPTS["list /root"] = lambda: os.listdir("/root") is not None
ATTEMPTS["/sys"] = lambda: os.listdir("/sys")
ATTEMPTS["cgroup files"] = lambda: os.listdir("/sys/fs/cgroup")

for _name, _path in TARGET["host_paths"].items():
    ATTEMPTS["host: " + _name] = lambda p=_path: os.stat(p) and True
    ATTEMPTS[f"host: {_name} by /proc/self/root"] = lambda p=_path: bool(os.stat(
        "/proc/self/root" + p))


@attempt("a host file by the root of another process")
def _():
    path = TARGET["host_paths"]["base"]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for way in ["root" + path, "cwd/" + "../" * 20 + path]:
            if os.path.exists(f"/proc/{pid}/{way}"):
                return f"{pid}/{way}"
    return False


@attempt("a host file by going up")
def _():
    return os.path.exists("/workspace/" + "../" * 20 + TARGET["host_paths"]["base"]) \
        or os.path.exists("/proc/self/root/" + "../" * 20 + TARGET["host_paths"]["base"])


# Sockets of the host.

def connects(address, family=socket.AF_UNIX):
    with socket.socket(family) as s:
        s.settimeout(5)
        s.connect(address)
    return True


@attempt("sockets in /run")
def _():
    for top in ["/run", "/var/run", "/tmp", "/dev"]:
        for at, _, names in os.walk(top):
            for name in names:
                try:
                    if stat.S_ISSOCK(os.stat(os.path.join(at, name)).st_mode):
                        return os.path.join(at, name)
                except OSError:
                    pass
    return False


ATTEMPTS["a host socket by its path"] = lambda: connects(TARGET["socket"])
ATTEMPTS["a host socket in the workspace"] = lambda: connects("socket")
ATTEMPTS["an abstract socket of the host"] = lambda: connects("\0" + TARGET["abstract"])
ATTEMPTS["an abstract socket of the host, datagram"] = lambda: socket.socket(
    socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "\0" + TARGET["abstract_datagram"]) == 1
ATTEMPTS["loopback of the host"] = lambda: connects(("127.0.0.1", TARGET["tcp4"]), socket.AF_INET)
ATTEMPTS["IPv6 loopback of the host"] = lambda: connects(("::1", TARGET["tcp6"]), socket.AF_INET6)

ATTEMPTS["raw socket"] = lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and True
ATTEMPTS["raw socket, IPv6"] = lambda: socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58) and True
for _name, _family, _type, _protocol in [
    ("packet", 17, 3, 0), ("vsock", 40, 1, 0), ("alg", 38, 5, 0), ("key", 15, 3, 2),
    ("bluetooth", 31, 3, 1), ("can", 29, 3, 1), ("tipc", 30, 5, 0), ("rds", 21, 5, 0),
    ("xdp", 44, 3, 0), ("kcm", 41, 2, 0), ("ax25", 3, 5, 0), ("smc", 43, 1, 0),
    ("netlink sock_diag", 16, 3, 4), ("netlink xfrm", 16, 3, 6), ("netlink audit", 16, 3, 9),
    ("netlink netfilter", 16, 3, 12), ("netlink uevent", 16, 3, 15), ("netlink generic", 16, 3, 16),
]:
    ATTEMPTS["socket " + _name] = \
        lambda f=_family, t=_type, p=_protocol: allowed(41, f, t, p)
    ATTEMPTS["socket " + _name + ", high bits"] = \
        lambda f=_family, t=_type, p=_protocol: allowed(41, f | 1 << 40, t, p | 1 << 40)


@attempt("change the loopback interface")
def _():
    import fcntl
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    request = fcntl.ioctl(s, 0x8913, struct.pack("16sh14x", b"lo", 0))
    fcntl.ioctl(s, 0x8914, request)
    return True


# Other processes.

@attempt("see processes of the host")
def _():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if TARGET["marker"].encode() in open(f"/proc/{pid}/cmdline", "rb").read():
                return pid != str(os.getpid()) and pid != str(os.getppid()) and pid
        except OSError:
            pass
    return False


def of_host():
    """A process of the host; inside, its number may be that of one of ours."""
    line = open(f"/proc/{TARGET['host_pid']}/cmdline", "rb").read()
    return TARGET["marker"].encode() in line


ATTEMPTS["signal a process of the host"] = \
    lambda: of_host() and os.kill(TARGET["host_pid"], 0) is None
ATTEMPTS["signal a process of the host by its pidfd"] = \
    lambda: of_host() and signal.pidfd_send_signal(os.pidfd_open(TARGET["host_pid"]), 0) is None

for _file, _flags in [("mem", os.O_RDONLY), ("mem", os.O_RDWR), ("environ", os.O_RDONLY),
                      ("maps", os.O_RDONLY), ("auxv", os.O_RDONLY), ("syscall", os.O_RDONLY),
                      ("io", os.O_RDONLY), ("clear_refs", os.O_WRONLY),
                      ("oom_score_adj", os.O_WRONLY), ("coredump_filter", os.O_WRONLY),
                      ("pagemap", os.O_RDONLY)]:
    _way = {os.O_RDONLY: "read", os.O_RDWR: "write", os.O_WRONLY: "write"}[_flags]

    def _open(file=_file, flags=_flags):
        fd = os.open(f"/proc/{INIT}/{file}", flags)
        if flags != os.O_WRONLY and file not in ("mem", "pagemap"):
            os.read(fd, 1)
        return True
    ATTEMPTS[f"{_way} init's {_file}"] = _open
ATTEMPTS["write init's timerslack_ns"] = lambda: writes(f"/proc/{INIT}/timerslack_ns", "50000")
ATTEMPTS["init's descriptors"] = lambda: os.listdir(f"/proc/{INIT}/fd") is not None
ATTEMPTS["init's socket"] = lambda: os.readlink(f"/proc/{INIT}/fd/{TARGET['init_fd']}") and True
ATTEMPTS["init's root"] = lambda: os.listdir(f"/proc/{INIT}/root/") is not None
ATTEMPTS["init's directory"] = lambda: os.listdir(f"/proc/{INIT}/cwd/") is not None
ATTEMPTS["init's program"] = lambda: opens(f"/proc/{INIT}/exe")
ATTEMPTS["init's namespaces"] = lambda: opens(f"/proc/{INIT}/ns/mnt")
ATTEMPTS["init's map_files"] = lambda: os.listdir(f"/proc/{INIT}/map_files") is not None

PTRACE_ATTACH, PTRACE_SEIZE, PTRACE_DETACH = 16, 0x4206, 17


@attempt("ptrace init")
def _():
    syscall(101, PTRACE_ATTACH, INIT, 0, 0)
    os.waitpid(INIT, 0x40000000)
    return allowed(101, PTRACE_DETACH, INIT, 0, 0)


ATTEMPTS["ptrace init by seizing"] = lambda: allowed(101, PTRACE_SEIZE, INIT, 0, 0)


def iovec():
    buffer = ctypes.create_string_buffer(8)
    vector = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 8)
    vector.kept = buffer
    return vector


# EFAULT: it was let in and found nothing at that address.
ATTEMPTS["read init's memory"] = lambda: allowed(
    310, INIT, iovec(), 1, (ctypes.c_ulong * 2)(4096, 8), 1, 0, but=["EFAULT"])
ATTEMPTS["write init's memory"] = lambda: allowed(
    311, INIT, iovec(), 1, (ctypes.c_ulong * 2)(4096, 8), 1, 0, but=["EFAULT"])
ATTEMPTS["advise on init's memory"] = lambda: allowed(
    440, os.pidfd_open(INIT), (ctypes.c_ulong * 2)(4096, 4096), 1, 20, 0, but=["ENOMEM"])
ATTEMPTS["take a descriptor of init"] = lambda: allowed(
    438, os.pidfd_open(INIT), TARGET["init_fd"], 0)
ATTEMPTS["compare with init"] = lambda: allowed(312, os.getpid(), INIT, 1, 0, 0)
ATTEMPTS["limits of init"] = lambda: allowed(
    302, INIT, 7, (ctypes.c_ulong * 2)(*resource.prlimit(INIT, 7)), 0)
ATTEMPTS["limits of init, high bits"] = lambda: allowed(
    302, INIT | 1 << 40, 7, (ctypes.c_ulong * 2)(*resource.getrlimit(7)), 0)
ATTEMPTS["priority of init"] = lambda: allowed(141, 0, INIT, 0)
ATTEMPTS["priority of all processes"] = lambda: allowed(141, 2, os.getuid(), 0)
ATTEMPTS["scheduler of init"] = lambda: os.sched_setscheduler(
    INIT, os.SCHED_OTHER, os.sched_param(0)) is None
ATTEMPTS["scheduler attributes of init"] = lambda: allowed(
    314, INIT, struct.pack("IIQiIQQQ", 48, 0, 0, 0, 0, 0, 0, 0), 0)
ATTEMPTS["scheduling parameters of init"] = lambda: allowed(142, INIT, struct.pack("i", 0))
ATTEMPTS["processors of init"] = lambda: os.sched_setaffinity(
    INIT, os.sched_getaffinity(INIT)) is None
ATTEMPTS["i/o priority of init"] = lambda: allowed(251, 1, INIT, 2 << 13 | 4)
ATTEMPTS["i/o priority of all processes"] = lambda: allowed(251, 3, os.getuid(), 2 << 13 | 4)
ATTEMPTS["memory pages of init"] = lambda: allowed(
    256, INIT, 64, (ctypes.c_ulong * 1)(1), (ctypes.c_ulong * 1)(1))

# Ourselves, made more than we are.

ATTEMPTS["nice below zero"] = lambda: os.setpriority(os.PRIO_PROCESS, 0, -5) is None
ATTEMPTS["realtime"] = lambda: os.sched_setscheduler(
    0, os.SCHED_FIFO, os.sched_param(1)) is None
ATTEMPTS["deadline scheduling"] = lambda: allowed(
    314, 0, struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**7, 10**8, 10**8), 0)
ATTEMPTS["realtime i/o"] = lambda: allowed(251, 1, 0, 1 << 13)


ATTEMPTS["oom score below zero"] = lambda: writes("/proc/self/oom_score_adj", "-1")


def raises(limit):
    _, hard = resource.getrlimit(limit)
    lower = max(0, min(hard, 1 << 20) - 1)
    resource.setrlimit(limit, (0, lower))
    return allowed(302, 0, limit, (ctypes.c_ulong * 2)(0, lower + 1), 0)


ATTEMPTS["raise the limit of open files"] = lambda: raises(resource.RLIMIT_NOFILE)
ATTEMPTS["raise the limit of core dumps"] = lambda: raises(resource.RLIMIT_CORE)

# Namespaces and mounts.

FLAGS = {"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000,
         "user": 0x10000000, "pid": 0x20000000, "network": 0x40000000, "time": 0x80}
for _name, _flag in FLAGS.items():
    ATTEMPTS["unshare " + _name] = lambda f=_flag: allowed(272, f)
    # EINVAL: the kernel looks at all bits, after the filter.
    ATTEMPTS[f"unshare {_name}, high bits"] = \
        lambda f=_flag: allowed(272, f | 1 << 40, but=["EINVAL"])
    if _name == "time":
        continue

    def _clone(flag=_flag):
        pid = syscall(56, flag | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        return True
    ATTEMPTS["clone " + _name] = _clone

    def _clone3(flag=_flag):
        arguments = (ctypes.c_ulong * 11)(flag, 0, 0, 0, signal.SIGCHLD)
        pid = syscall(435, arguments, ctypes.sizeof(arguments))
        if pid == 0:
            os._exit(0)
        return True
    ATTEMPTS["clone3 " + _name] = _clone3

ATTEMPTS["setns by file"] = lambda: allowed(308, os.open("/proc/self/ns/uts", os.O_RDONLY), 0)
ATTEMPTS["setns by pidfd"] = lambda: allowed(308, os.pidfd_open(INIT), FLAGS["uts"])


def in_scratch(action):
    """Runs an action on a new directory, and leaves none behind."""
    directory = os.path.join(TARGET["scratch"], f"ringfence-probe-{os.getpid()}")
    os.mkdir(directory)
    try:
        return action(directory.encode())
    finally:
        LIBC.umount2(directory.encode(), 2)
        os.rmdir(directory)


ATTEMPTS["mount tmpfs"] = lambda: in_scratch(
    lambda d: allowed(165, b"none", d, b"tmpfs", 0, b"size=4k"))
ATTEMPTS["mount proc"] = lambda: in_scratch(lambda d: allowed(165, b"none", d, b"proc", 0, 0))
ATTEMPTS["mount bind"] = lambda: in_scratch(lambda d: allowed(165, b"/usr", d, 0, 4096, 0))
ATTEMPTS["mount overlay"] = lambda: in_scratch(
    lambda d: allowed(165, b"none", d, b"overlay", 0, b"lowerdir=/usr:/etc"))
ATTEMPTS["remount"] = lambda: allowed(165, 0, b"/nowhere", 0, 32, 0, but=["ENOENT"])
ATTEMPTS["unmount"] = lambda: allowed(166, b"/nowhere", 0, but=["ENOENT", "EINVAL"])
ATTEMPTS["pivot_root"] = lambda: allowed(155, b"/nowhere", b"/nowhere", but=["ENOENT"])
ATTEMPTS["fsopen"] = lambda: allowed(430, b"tmpfs", 0)
ATTEMPTS["open_tree"] = lambda: allowed(428, -100, b"/usr", 1)
ATTEMPTS["move_mount"] = lambda: allowed(
    429, -100, b"/nowhere", -100, b"/nowhere", 0, but=["ENOENT"])
ATTEMPTS["mount_setattr"] = lambda: allowed(
    442, -100, b"/nowhere", 0, (ctypes.c_ulong * 4)(1), 32, but=["ENOENT"])
ATTEMPTS["chroot"] = lambda: os.chroot(TARGET["scratch"]) is None


def makes_node(directory):
    path = os.path.join(directory, f"ringfence-probe-{os.getpid()}")
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.unlink(path)
    return True


ATTEMPTS["make a device in /tmp"] = lambda: makes_node("/tmp")
ATTEMPTS["make a device in the workspace"] = lambda: makes_node(".")
ATTEMPTS["make a device in /dev/shm"] = lambda: makes_node("/dev/shm")

# The kernel.

ATTEMPTS["keyctl"] = lambda: allowed(250, 0, -3, 0)
ATTEMPTS["add_key"] = lambda: allowed(248, b"user", b"ringfence-probe", b"x", 1, -1)
ATTEMPTS["request_key"] = lambda: allowed(
    249, b"user", b"ringfence-none", 0, -1, but=["ENOKEY"])
ATTEMPTS["io_uring"] = lambda: allowed(425, 1, ctypes.create_string_buffer(120))
ATTEMPTS["bpf"] = lambda: allowed(321, 0, struct.pack("IIII", 2, 4, 4, 1) + bytes(112), 128)
ATTEMPTS["userfaultfd"] = lambda: allowed(323, 0x80000)
ATTEMPTS["perf_event_open"] = lambda: allowed(
    298, struct.pack("II", 1, 112) + bytes(104), 0, -1, -1, 0)
ATTEMPTS["fanotify"] = lambda: allowed(300, 0, 0)
ATTEMPTS["load a module"] = lambda: allowed(
    175, b"none", 4, b"", but=["ENOEXEC", "EFAULT"])
ATTEMPTS["load a module by file"] = lambda: allowed(
    313, os.open(sys.executable, os.O_RDONLY), b"", 0, but=["ENOEXEC", "EINVAL"])
ATTEMPTS["unload a module"] = lambda: allowed(176, b"ringfence_none", 0x800, but=["ENOENT"])
ATTEMPTS["kexec"] = lambda: allowed(246, 0, 0, 0, 1 << 30, but=["EINVAL", "ENOSYS"])
ATTEMPTS["reboot"] = lambda: allowed(
    169, 0xFEE1DEAD - (1 << 32), 672274793, 1, 0, but=["EINVAL"])
ATTEMPTS["swapon"] = lambda: allowed(167, b"/nowhere", 0, but=["ENOENT"])
ATTEMPTS["swapoff"] = lambda: allowed(168, b"/nowhere", but=["ENOENT", "EINVAL"])
ATTEMPTS["acct"] = lambda: allowed(163, b"/nowhere", but=["ENOENT"])
ATTEMPTS["kernel log"] = lambda: allowed(103, 10, 0, 0)
ATTEMPTS["settimeofday"] = lambda: allowed(164, 0, 0)
ATTEMPTS["clock_settime"] = lambda: allowed(
    227, 0, (ctypes.c_long * 2)(0, 10**10), but=["EINVAL"])
ATTEMPTS["adjtimex"] = lambda: allowed(
    159, struct.pack("I4xqq", 0x2, 0, 0) + bytes(184))
ATTEMPTS["sethostname"] = lambda: socket.sethostname(socket.gethostname()) is None
ATTEMPTS["setdomainname"] = lambda: allowed(171, b"(none)", 6)
ATTEMPTS["vhangup"] = lambda: (os.setsid(), allowed(153))
ATTEMPTS["iopl"] = lambda: allowed(172, 3)
ATTEMPTS["ioperm"] = lambda: allowed(173, 0x80, 1, 1)
ATTEMPTS["modify_ldt"] = lambda: allowed(154, 0, ctypes.create_string_buffer(8), 8)
ATTEMPTS["quotactl"] = lambda: allowed(
    179, 0x80000400 - (1 << 32), b"/nowhere", 0, 0, but=["ENOENT", "EINVAL", "ENODEV"])


@attempt("open by handle")
def _():
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount_id = ctypes.c_int()
    path = TARGET["scratch"].encode()
    syscall(303, -100, path, handle, ctypes.byref(mount_id), 0)
    return allowed(304, os.open(path, os.O_RDONLY), handle, os.O_RDONLY)


# Terminals.

def on_terminal(request, argument):
    outer, inner = os.openpty()
    os.setsid()
    import fcntl
    fcntl.ioctl(inner, 0x540E, 0)
    return allowed(16, inner, request, ctypes.create_string_buffer(argument))


ATTEMPTS["type on the terminal"] = lambda: on_terminal(0x5412, b"x")
ATTEMPTS["type on the terminal, high bits"] = lambda: on_terminal(0x5412 | 1 << 32, b"x")
ATTEMPTS["paste on a console"] = lambda: on_terminal(0x541C, b"\x03")
ATTEMPTS["paste on a console, high bits"] = lambda: on_terminal(0x541C | 1 << 40, b"\x03")
ATTEMPTS["take the console"] = lambda: on_terminal(0x541D, b"")


# Other tables of system calls.

@attempt("x32 calls")
def _():
    return syscall(0x40000000 | 39) and True


@attempt("i386 calls")
def _():
    import mmap
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
    code.write(b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid()


# Devices and files of the kernel.

for _name in ["fuse", "kmsg", "mem", "port", "kvm", "vda", "sda", "loop0", "loop-control", "console",
              "tty0", "tty1", "net/tun", "vsock", "vhost-net", "userfaultfd", "uinput", "rtc0",
              "hwrng", "nvram", "btrfs-control", "mapper/control"]:
    ATTEMPTS["/dev/" + _name] = lambda n=_name: opens("/dev/" + n, os.O_RDONLY | os.O_NONBLOCK)

USUAL = {"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin",
         "stdout", "tty", "urandom", "zero"}
ATTEMPTS["other devices"] = lambda: sorted(set(os.listdir("/dev")) - USUAL)

for _path, _flags in [
    ("kcore", os.O_RDONLY), ("kmsg", os.O_RDONLY | os.O_NONBLOCK), ("sysrq-trigger", os.O_WRONLY),
    ("sys/kernel/core_pattern", os.O_WRONLY), ("sys/kernel/hostname", os.O_WRONLY),
    ("sys/kernel/modprobe", os.O_WRONLY), ("sys/vm/drop_caches", os.O_WRONLY),
    ("sys/user/max_user_namespaces", os.O_WRONLY),
    ("sys/net/ipv4/ip_forward", os.O_WRONLY), ("irq/default_smp_affinity", os.O_WRONLY),
    ("kpagecount", os.O_RDONLY), ("kpageflags", os.O_RDONLY), ("timer_list", os.O_RDONLY),
    ("slabinfo", os.O_RDONLY), ("vmallocinfo", os.O_RDONLY),
    ("self/setgroups", os.O_WRONLY), ("sys/fs/binfmt_misc/register", os.O_WRONLY),
    ("bus/pci/devices", os.O_WRONLY), ("mtrr", os.O_WRONLY),
]:
    ATTEMPTS["/proc/" + _path] = lambda p=_path, f=_flags: opens("/proc/" + p, f)
# Everybody may open these; what counts is whether they can be written.
ATTEMPTS["/proc/self/uid_map"] = lambda: writes("/proc/self/uid_map", "0 0 1")
ATTEMPTS["/proc/sys/kernel/ns_last_pid"] = lambda: writes(
    "/proc/sys/kernel/ns_last_pid", open("/proc/sys/kernel/ns_last_pid").read())


@attempt("kernel addresses")
def _():
    with open("/proc/kallsyms") as file:
        return any(line.split()[0].strip("0") for _, line in zip(range(100), file))


def run(function):
    """The outcome of an attempt, made by a child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        signal.alarm(30)
        try:
            result = function()
            answer = [bool(result), str(result)]
        except OSError as error:
            answer = [False, errno.errorcode.get(error.errno, str(error))]
        except BaseException as error:
            answer = [None, repr(error)]
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    answer = b""
    while chunk := os.read(reader, 65536):
        answer += chunk
    os.close(reader)
    _, code = os.waitpid(pid, 0)
    return json.loads(answer) if answer else [False, f"ended with {code}"]


def main():
    # Not one of ours: the listing itself.
    extra = [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2]
    TARGET["descriptors"] = [fd for fd in extra if os.path.exists(f"/proc/self/fd/{fd}")]
    answers = {name: run(function) for name, function in ATTEMPTS.items()}
    facts = {"uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(),
             "environment": sorted(os.environ), "root": os.listdir("/")}
    print(json.dumps({"attempts": answers, "facts": facts}))


main()
