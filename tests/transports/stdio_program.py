"""A real process that serves over its standard descriptors: `python -m ... MODE`.

Each mode is a method of `Port`. The exit code is 0 when the
input ended, otherwise 3.
"""

import asyncio
import os
import subprocess
import sys
import time

from raxol_mcp.transports.stdio import Ended, serve_stdio
from raxol_mcp.wire.jsonrpc import Incoming, Notification, Request
from tests.transports.fakes import FakePort


class Port(FakePort):
    """Does what its mode says for every request to `work`, and then echoes it."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.on_receive = self.acts
        self._mode = mode
        self._stopping_hangs = False
        self._child = 0

    def acts(self, message: Incoming) -> bool:
        if isinstance(message, Request) and message.method == "work":
            getattr(self, self._mode)()
        return False

    async def stop(self) -> None:
        if self._stopping_hangs:
            await asyncio.Event().wait()

    def echo(self) -> None:
        """Do nothing more."""

    def noisy(self) -> None:
        sys.stdout.write("NOISE\n")
        os.write(1, b"RAW NOISE\n")
        subprocess.run(["sh", "-c", "echo CHILD NOISE; cat"], check=True)
        try:
            input()
        except EOFError:
            sys.stdout.write("NOTHING TO READ\n")

    def chatters(self) -> None:
        async def chats() -> None:
            while True:
                self.sink.put(Notification("n"), droppable=True)
                await asyncio.sleep(0.001)

        self.chatting = asyncio.ensure_future(chats())

    def blocks(self) -> None:
        asyncio.get_running_loop().call_later(0.0, time.sleep, 60.0)

    def hangs(self) -> None:
        self._stopping_hangs = True

    hangs_long = hangs

    def forks(self) -> None:
        """Fork at the first request, and let the child come back here; wait for it at the next."""
        if self._child:
            _, status = os.waitpid(self._child, 0)
            sys.stderr.write(f"CHILD ENDED {status}\n")
        else:
            self._child = os.fork()

    def forks_long(self) -> None:
        self._child = os.fork()
        if self._child == 0:
            time.sleep(60.0)
            os._exit(0)
        sys.stderr.write(f"{self._child}\n")


def main(mode: str) -> int:
    """Serve and return the exit code."""
    sys.stdout.write("BANNER\n")  # block-buffered, since stdout is a pipe
    exit_timeout = 0.3 if mode in ("blocks", "hangs") else 60.0
    ended = asyncio.run(serve_stdio(Port(mode), exit_timeout=exit_timeout))
    sys.stderr.write(f"{ended.name}\n")
    return 0 if ended is Ended.INPUT_ENDED else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
