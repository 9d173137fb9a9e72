"""A program with one sandbox and nothing else: `one_sandbox.py DIRECTORY`. Prints microseconds as JSON."""

import json
import sys
import time

from ringfence import Sandbox

begin = time.perf_counter()
with Sandbox.from_local(sys.argv[1], preset="agent-safe") as sandbox:
    sandbox.run("true", raise_on_error=True)
    usable = time.perf_counter()
end = time.perf_counter()
print(json.dumps({"usable": (usable - begin) * 1e6, "block": (end - begin) * 1e6}))
