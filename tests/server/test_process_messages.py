"""Frames: whole, in pieces, and too long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raxol_mcp.server.process_messages import Frames, Garbled, frame_payload


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(1, 30), min_size=1))
def test_frames_arrive_whole_however_the_stream_is_cut(
    payloads: list[bytes], sizes: list[int]
) -> None:
    """K10, K16: a stream has no message borders."""
    stream = b"".join(map(frame_payload, payloads))
    frames, received, position, turn = Frames(40), [], 0, 0
    while position < len(stream):
        size = sizes[turn % len(sizes)]
        received += frames.feed(stream[position : position + size])
        position, turn = position + size, turn + 1
    assert received == payloads


def test_a_frame_above_the_bound_is_refused_before_it_is_collected() -> None:
    frames = Frames(100)
    with pytest.raises(Garbled, match="101"):
        frames.feed((101).to_bytes(4, "big"))
