"""This server, seen by what others have written: their clients, and their schemas."""
