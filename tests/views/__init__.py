"""Tests of `raxol_mcp.views`."""
