"""The machines: facts in, effects out. Pure: no I/O, no clock, no randomness, no asyncio."""
