"""Server-sent events: the bytes of a streamed answer."""

import msgspec

HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # asks nginx to pass each event on at once
}
PING = b": ping\n\n"
"""A comment: clients skip it, and what stands between sees that the connection lives."""
DONE = b"data: [DONE]\n\n"


def event(payload: object) -> bytes:
    """One event with `payload` as JSON, which never contains a raw line break."""
    return b"data: " + msgspec.json.encode(payload) + b"\n\n"
