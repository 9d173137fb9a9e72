"""Does with a client what it is told: `worker PACKAGE [ADDRESS]`. Orders and answers are lines of JSON.

The package is `ringfence` or `agentfense`, which have the same names for most of what is done here.
Without an address it is the private server of this process that is asked.
"""

import importlib
import json
import sys

from asynchronous import Asynchronous
from blocking import Blocking
from trees import Trees


def main():
    name, *address = sys.argv[1:]
    package = importlib.import_module(name)
    options = {"endpoint": address[0]} if address else {}
    kinds = (Blocking, Asynchronous, Trees) if name == "ringfence" else (Blocking,)
    clients = [kind(package, options) for kind in kinds]
    orders = {order: do for client in clients for order, do in client.orders().items()}
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(answer(orders[order.pop("work")], order)), flush=True)
    for client in clients:
        client.close()


def answer(do, details):
    """Whatever goes wrong is for the report, and the next order may succeed."""
    try:
        return do(**details) or "done"
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
