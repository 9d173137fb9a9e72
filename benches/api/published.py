"""The published client's own loops: `published.py ADDRESS DIRECTORY BYTES COUNT`.

Runs in an environment that has `agentfense` and nothing of ours. Prints microseconds as JSON.
"""

import json
import sys
import time

from agentfense import Sandbox, SandboxClient


def timed(work):
    start = time.perf_counter()
    result = work()
    return (time.perf_counter() - start) * 1e6, result


def start(address, directory):
    """One call for each file, then the sandbox."""
    micros, sandbox = timed(lambda: Sandbox.from_local(directory, preset="agent-safe", endpoint=address))
    sandbox.destroy()
    return [micros]


def single_files(address, size, count):
    """Uploads and downloads of one file each."""
    with SandboxClient(endpoint=address) as client:
        codebase = client.create_codebase(name="bench", owner_id="bench").id
        contents = [(f"python {number}\n" * size).encode()[:size] for number in range(count)]
        up = [timed(lambda: client.upload_file(codebase, f"{n}.bin", c))[0] for n, c in enumerate(contents)]
        down = []
        for number, content in enumerate(contents):
            micros, received = timed(lambda: client.download_file(codebase, f"{number}.bin"))
            assert received == content
            down.append(micros)
        client.delete_codebase(codebase)
    return up, down


def main():
    address, directory, size, count = sys.argv[1:]
    started = start(address, directory)
    up, down = single_files(address, int(size), int(count))
    print(json.dumps({"start": started, "upload": up, "download": down}))


if __name__ == "__main__":
    main()
