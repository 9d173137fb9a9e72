"""Microseconds, and the words that answers are made of."""

import time

PRESET = "agent-safe"
RUN = "true"
BUILTIN = ":"


def timed(work):
    """How long it took, and what came of it."""
    begin = time.perf_counter()
    result = work()
    return (time.perf_counter() - begin) * 1e6, result


def repeated(work, count):
    return [timed(work)[0] for _ in range(count)]


def answer(**series):
    return {"times": series}


def lives(moments):
    """From (begin, usable, end) of each: how long until it could be used, and until it was gone."""
    return answer(
        usable=[(usable - begin) * 1e6 for begin, usable, _ in moments],
        destroy=[(end - usable) * 1e6 for _, usable, end in moments],
    )
