"""Which package this is, and which servers it understands."""

VERSION = "0.1.0"

API = 1
"""The newest revision of the API that this package knows (`InfoResponse.api`)."""

OLDEST_SERVER_API = 1
"""The oldest one of a server that has all it needs."""
