"""MCP over HTTP: one endpoint for both eras, as an ASGI application, and a way to run it."""
