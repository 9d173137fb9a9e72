"""For what has no event to wait for."""

import time


def until(happened, deadline=30):
    """What it says, as soon as it says something."""
    end = time.monotonic() + deadline
    while not (said := happened()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
    return said
