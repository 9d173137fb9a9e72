"""What is generated and checked in is what `generate.py` writes."""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def check(root, *options):
    return subprocess.run(
        [sys.executable, root / "sdk" / "python" / "generate.py", "--check", *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)


def test_what_is_checked_in_is_what_is_written():
    done = check(ROOT)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_change_by_hand_is_found(tmp_path):
    shutil.copytree(ROOT / "sdk" / "python", tmp_path / "sdk" / "python",
                    ignore=shutil.ignore_patterns("tests", "__pycache__"))
    with open(tmp_path / "sdk" / "python" / "ringfence" / "_sync" / "_sandbox.py", "a") as file:
        file.write("# by hand\n")
    done = check(tmp_path, "--only", "sync")
    assert done.returncode == 1
    assert done.stdout == "ringfence/_sync/_sandbox.py is not what generate.py writes\n"
