"""Python's garbage collector in a process that only serves: it looks rarely.

State of the whole process, so only for who owns that (ADR-0021). Changes nothing of what is freed
by reference counts, which is nearly everything.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

__all__ = ["YOUNG_OBJECTS", "collecting_rarely"]

# So many new containers before the collector looks. The default (700) is what twenty requests hold
# while they wait for their answers: it would look at them, find them all in use, and look again.
YOUNG_OBJECTS: Final = 20_000


# Who serves in this process: the first one changes it, the last one puts it back.
_serving: Final[list[object]] = []
_undo: Final = ExitStack()


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Let the collector look rarely inside of the block, and not at what is there by now.

    What whoever runs us chose stays: a collector that is off, a higher threshold, frozen objects.
    Blocks may overlap in any way.
    """
    if not _serving:
        _undo.enter_context(_changed())
    mine = object()
    _serving.append(mine)
    try:
        yield
    finally:
        _serving.remove(mine)
        if not _serving:
            _undo.close()


@contextmanager
def _changed() -> Iterator[None]:
    before = gc.get_threshold()
    freeze = gc.isenabled() and not gc.get_freeze_count()
    if freeze:
        gc.collect()  # or what is garbage by now would be kept
        gc.freeze()
    if before[0]:  # 0: it never looks by itself
        gc.set_threshold(max(before[0], YOUNG_OBJECTS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if freeze:
            gc.unfreeze()
