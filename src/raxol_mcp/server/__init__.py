"""The server: what people register, and the asyncio shell that carries decisions out."""
