"""Images made from this machine's own files, for an engine that can fetch none.

    images.py full|busybox|musl|empty >image.tar

`full` has shells, Python, Perl and the usual programs; `busybox` one program under many names and a user
`app`; `musl` a program with another C library; `empty` a single static program and nothing else.
"""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile

SHELLS = ["bash", "dash", "sh", "zsh", "busybox"]
PROGRAMS = ["python3", "perl", "git", "make", "cc", "as", "ld", "cksum", "vim", "setpriv", "unshare", "prlimit", "stdbuf", "script",
            "getent", "locale", "tty", "stty", "setfattr", "getfattr", "ldd", "strace", "pgrep", "pkill",
            "timeout", "numfmt", "printenv", "sqlite3", "curl", "nohup", "ionice", "openssl", "ssh", "nsenter"]

SKIPPED = {"__pycache__", "test"}
OF_CC = ["cc1", "collect2", "liblto_plugin.so", "crt1.o", "Scrt1.o", "crti.o", "crtn.o", "crtbeginS.o",
         "crtendS.o", "libc.so", "libc_nonshared.a", "libgcc.a", "libgcc_s.so", "libgcc_s.so.1"]


def busybox():
    found = shutil.which("busybox")
    if not found:
        sys.exit("busybox is not installed")
    return found


def names_of_busybox():
    return subprocess.run([busybox(), "--list"], capture_output=True, text=True, check=True).stdout.split()


def libraries(program):
    """What a program is linked with; nothing if it is static or a script."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    words = (line.replace("=>", " ").split() for line in said.splitlines())
    return {word for line in words for word in line if word.startswith("/")}


def parts_of_cc():
    """What it takes to compile and link a program that prints."""
    source = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    made = subprocess.run(["cc", "-M", "-x", "c", "-"], input=source, capture_output=True, text=True, check=True)
    headers = [word for word in made.stdout.split() if word.startswith("/")]
    ask = [subprocess.run(["cc", f"-print-{kind}-name={name}"], capture_output=True, text=True).stdout.strip()
           for name in OF_CC for kind in ("file", "prog")]
    return [os.path.normpath(path) for path in [*headers, *ask] if path.startswith("/")]


class Image:
    """Files with their links and libraries, each once."""

    def __init__(self, out):
        self.tar = tarfile.open(fileobj=out, mode="w|")
        self.seen = set()

    def directory(self, path, mode=0o755):
        if path in self.seen or path == "/":
            return
        self.directory(os.path.dirname(path))
        self._put(path, tarfile.DIRTYPE, mode)

    def link(self, path, target):
        self._parents(path)
        if path not in self.seen:
            self._put(path, tarfile.SYMTYPE, 0o777, target=target)

    def text(self, path, text):
        self._parents(path)
        self._put(path, tarfile.REGTYPE, 0o644, text.encode())

    def _put(self, path, kind, mode, content=b"", target=""):
        self.seen.add(path)
        entry = tarfile.TarInfo(path.lstrip("/"))
        entry.type, entry.mode, entry.linkname, entry.size = kind, mode, target, len(content)
        self.tar.addfile(entry, io.BytesIO(content))

    def file(self, path, source=None):
        """A file or link of this machine, what it leads to, and what it is linked with."""
        self._parents(path)
        if not source:
            source = path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if path in self.seen:
            return
        self.seen.add(path)
        if os.path.islink(source):
            self._add(source, path)
            self.file(os.path.normpath(os.path.join(os.path.dirname(source), os.readlink(source))))
            return
        if not os.path.isfile(source):
            return
        self._add(source, path)
        if os.access(source, os.X_OK) or ".so" in source:
            for library in sorted(libraries(source)):
                self.file(library)

    def tree(self, root):
        for path in sorted(pathlib.Path(root).rglob("*")):
            if not SKIPPED & set(path.parts) and path.is_file():
                self.file(str(path))

    def _add(self, source, path):
        # Each name is a file of its own, whatever is linked here.
        self.tar.inodes = {}
        self.tar.add(source, path.lstrip("/"), recursive=False, filter=_of_root)

    def _parents(self, path):
        """With the links that lead there: most machines have merged `/bin` into `/usr`."""
        above = os.path.dirname(path)
        if above in self.seen or above == "/":
            return
        self._parents(above)
        if os.path.islink(above):
            self.seen.add(above)
            self._add(above, above)
            self.directory(os.path.realpath(above))
        else:
            self.directory(above)


def _of_root(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def full(image):
    for top in ("/bin/x", "/sbin/x", "/lib/x", "/lib64/x", "/usr/lib/x"):
        image._parents(top)
    for name in [*SHELLS, *PROGRAMS, *names_of_busybox()]:
        found = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
        if found and os.path.getsize(found) < 64 << 20:
            image.file(found)
    image.link("/bin/sh" if not os.path.islink("/bin") else "/usr/bin/sh", "dash")
    python = subprocess.run(["/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"],
                            capture_output=True, text=True)
    image.tree(python.stdout.strip() or sysconfig.get_path("stdlib"))
    perl = subprocess.run(["perl", "-e", "print join ':', @INC"], capture_output=True, text=True).stdout
    for root in [*perl.split(":"), *map(str, pathlib.Path("/usr/lib").glob("*/zsh"))]:
        if root.startswith("/usr/") and os.path.isdir(root):
            image.tree(root)
    # Where Debian has what a new virtual environment needs.
    image.tree("/usr/share/python-wheels")
    image.tree("/usr/lib/locale/C.utf8")
    image.tree("/lib/terminfo")
    for path in parts_of_cc():
        image.file(path)
    image.text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n")
    image.text("/etc/group", "root:x:0:\n")
    image.directory("/root", 0o700)
    image.directory("/opt")


def small(image):
    image.file("/bin/busybox", busybox())
    for name in names_of_busybox():
        image.link(f"/bin/{name}", "/bin/busybox")
    image.text("/etc/passwd", "root:x:0:0::/root:/bin/sh\napp:x:1234:2345::/home/app:/bin/sh\n")
    image.text("/etc/group", "root:x:0:\napp:x:2345:\nmore:x:3456:app\n")


ECHO = """
#include <stdio.h>
int main(int count, char **words) {
    for (int i = 1; i < count; i++) printf("%s\\n", words[i]);
}
"""


def built(image, *compiler):
    """A program that says its arguments, one in a line."""
    with tempfile.TemporaryDirectory() as place:
        program = os.path.join(place, "say")
        subprocess.run([*compiler, "-x", "c", "-", "-o", program], input=ECHO, text=True, check=True)
        image.seen.add("/say")
        image.tar.add(program, "say", filter=_of_root)


def musl(image):
    built(image, "musl-gcc")
    for loader in pathlib.Path("/lib").glob("ld-musl-*.so.1"):
        image.directory("/lib")
        image.tar.add(os.path.realpath(loader), str(loader).lstrip("/"), filter=_of_root)


def empty(image):
    built(image, "cc", "-static")


if __name__ == "__main__":
    made = Image(sys.stdout.buffer)
    {"full": full, "busybox": small, "musl": musl, "empty": empty}[sys.argv[1]](made)
    made.tar.close()
