"""The tests of raxol_mcp; the folders mirror src/raxol_mcp."""
