"""`python -m raxol_mcp`: the `raxol-mcp` command for whoever has it not on the path."""

from raxol_mcp.cli import main

if __name__ == "__main__":  # worker processes import this module
    main()
