"""The version of this distribution, written down once.

The build reads it from here, so that nothing has to look up package metadata at start-up.
"""

__all__ = ["VERSION"]

VERSION = "0.1.0"
