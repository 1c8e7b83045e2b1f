"""A server that does as it is told, as a program of its own: `python -I -S peers_subprocess.py`.

Every request is carried out by the method of `Peer` that it names; what that returns is the
result. Only modules that load fast: many tests start it.
"""

import json
import os
import signal
import sys
import time


class Peer:
    """What a test may ask for. Each method is given the params of the request."""

    def __init__(self) -> None:
        self._id = 0
        self._notes = ""
        self._stays = False

    def serve(self) -> None:
        """Carry out requests until the input ends."""
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self._id = message["id"]
                result = getattr(self, message["method"])(message.get("params", {}))
                if result is not None:
                    self.answer(result)
        self._note("EOF")
        while self._stays:
            time.sleep(3600.0)

    def answer(self, result: object) -> None:
        self.put(json.dumps({"jsonrpc": "2.0", "id": self._id, "result": result}).encode() + b"\n")

    def put(self, text: bytes, chunk: int = 0) -> None:
        if chunk:
            for at in range(0, len(text), chunk):
                os.write(1, text[at : at + chunk])
            return
        while text:
            text = text[os.write(1, text) :]

    def echo(self, params: object) -> object:
        return params

    def about(self, params: object) -> object:
        """Say how this was started."""
        return {
            "argv": [os.fsencode(argument).hex() for argument in sys.argv[1:]],
            "env": dict(os.environ),
            "cwd": os.getcwd(),
            "pid": os.getpid(),
            "group": os.getpgrp(),
            "session": os.getsid(0),
            "fds": sorted(map(int, os.listdir("/proc/self/fd"))),
        }

    def write(self, params: dict[str, object]) -> object:
        """Write bytes, given as hex; `$ID` in them is the id of the request."""
        text = bytes.fromhex(str(params["hex"])).replace(b"$ID", str(self._id).encode())
        chunk = params.get("chunk", 0)
        assert isinstance(chunk, int)
        self.put(text, chunk)
        return params.get("result")

    def big(self, params: dict[str, int]) -> object:
        return "x" * params["size"]

    def endless(self, params: dict[str, int]) -> None:
        """Write a line that has no end, as far as anybody reads it."""
        while True:
            os.write(1, b"x" * 65536)

    def flood(self, params: dict[str, int]) -> object:
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1000}}
        self.put((json.dumps(note) + "\n").encode() * params["count"])
        return "done"

    def errors(self, params: dict[str, str]) -> object:
        sys.stderr.write(params["text"])
        sys.stderr.flush()
        return "written"

    def exit(self, params: dict[str, object]) -> None:
        """Exit at once, perhaps after an answer or some last words."""
        if "result" in params:
            self.answer(params["result"])
        if "unfinished" in params:
            self.put(str(params["unfinished"]).encode())
        sys.stderr.write(str(params.get("text", "")))
        sys.stderr.flush()
        code = params["code"]
        assert isinstance(code, int)
        os._exit(code)

    def dies(self, params: dict[str, int]) -> None:
        os.kill(os.getpid(), params["signal"])

    def closes(self, params: dict[str, int]) -> None:
        """Close one descriptor and live on."""
        os.close(params["fd"])
        time.sleep(3600.0)

    def stops_reading(self, params: object) -> None:
        self.answer("stopped")
        time.sleep(3600.0)

    def begets(self, params: dict[str, bool]) -> object:
        """Have a child that holds the pipes, and keeps them in spite of SIGTERM if it is told."""
        child = os.fork()
        if child == 0:
            if params["stubborn"]:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if params.get("talks"):
                while True:
                    time.sleep(0.01)
                    self.put(b'{"jsonrpc":"2.0","method":"late"}\n')
            time.sleep(3600.0)
        return child

    def notes(self, params: dict[str, object]) -> object:
        """Write down what comes to end this, in the file `path`, and perhaps stay."""
        self._notes = str(params["path"])
        self._stays = bool(params["stays"])
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._note("TERM"))
        return "noting"

    def deaf(self, params: object) -> object:
        """Ignore the end of the input and SIGTERM."""
        self._stays = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return "deaf"

    def _note(self, word: str) -> None:
        if self._notes:
            with open(self._notes, "a", encoding="utf-8") as file:
                file.write(f"{word}\n")


if __name__ == "__main__":
    Peer().serve()
