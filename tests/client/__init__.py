"""The tests of the client; the scripted servers they use are in `peers`."""
