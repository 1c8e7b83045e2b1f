"""A client's end of MCP over HTTP: Streamable HTTP of every revision, and HTTP+SSE of 2024-11-05.

Start at `raxol_mcp.transports.http_client.dialer`. aiohttp is imported when a link opens.
"""
