"""Whatever a server does: each call ends once, and in time, and nothing is left."""
