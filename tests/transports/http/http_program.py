"""A program that serves the tools of the tests over HTTP until a signal ends it.

Its first line on stdout is its address. `python http_program.py '{"option": value}'`.
"""

import asyncio
import json
import sys

from raxol_mcp import serve_http
from tests.transports.http.world import World


def main() -> None:
    """Serve."""
    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    ended = asyncio.run(
        serve_http(
            World().server,
            port=0,
            require_authorization=False,
            ready=lambda url: print(url, flush=True),  # noqa: T201  # what the test waits for
            **options,
        )
    )
    print(ended.name if ended else "ended", flush=True)  # noqa: T201  # as above


if __name__ == "__main__":
    main()
