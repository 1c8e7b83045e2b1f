"""What the kernel knows about a process: CPU time and memory. Linux only."""

from __future__ import annotations

from pathlib import Path

__all__ = ["cpu", "memory"]


def cpu(pid: int) -> float:
    """Return the CPU seconds of all threads that live now.

    Counted by the scheduler in nanoseconds: the ticks of `stat` are 10 ms long.
    """
    nanoseconds = 0
    for counted in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        nanoseconds += int(counted.read_text("ascii").split()[0])
    return nanoseconds / 1e9


def memory(pid: int) -> dict[str, int]:
    """Return "Rss" and "Pss" in bytes; Pss counts a page shared by n processes as 1/n."""
    fields = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()[1:]:
        name, value = line.split(":")
        fields[name] = int(value.split()[0]) * 1024
    return {name: fields[name] for name in ("Rss", "Pss")}
