"""Writes what a server gave that is no text, or that a person wants in a file: `--output`.

Where to is the person's to say. No name of a file comes from a server.
"""

from __future__ import annotations

import base64
import binascii
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.wire.values import Value

__all__ = ["STDOUT", "Part", "parts_of_contents", "parts_of_result", "save"]

STDOUT: Final = "-"

_EXTENSIONS: Final = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
    "text/html": ".html",
    "text/markdown": ".md",
}


class Part(Value, frozen=True):
    """Something to write: its bytes, and what the server says they are."""

    content: bytes
    mime_type: str


def parts_of_result(blocks: Sequence[Mapping[str, object]]) -> dict[int, Part]:
    """Find the images, the audio and the embedded files of a result, by the number of the block.

    Raises ConfigurationError for data that is none.
    """
    parts = {}
    for number, block in enumerate(blocks):
        resource = block.get("resource")
        if isinstance(block.get("data"), str) and block.get("type") in ("image", "audio"):
            parts[number] = _part(block.get("data"), block.get("mimeType"))
        elif isinstance(resource, Mapping) and isinstance(resource.get("blob"), str):
            parts[number] = _part(resource["blob"], resource.get("mimeType"))
    return parts


def parts_of_contents(contents: Sequence[Mapping[str, object]]) -> dict[int, Part]:
    """Find what a resource holds, texts too, by its number. Raises ConfigurationError."""
    parts = {}
    for number, content in enumerate(contents):
        text = content.get("text")
        if isinstance(text, str):
            parts[number] = Part(text.encode(), _mime_type(content.get("mimeType"), "text/plain"))
        else:
            parts[number] = _part(content.get("blob"), content.get("mimeType"))
    return parts


def save(parts: Mapping[int, Part], target: str) -> dict[int, str]:
    """Write parts and say where to. `target` is a file, a folder, or `-` for stdout.

    A file is replaced, as everywhere; in a folder nothing is. Raises click.UsageError where a
    target does not do, and ConfigurationError where it cannot be written.
    """
    if not parts:
        raise ConfigurationError("--output has nothing to write: the server gave texts alone")
    folder = target.endswith(os.sep) or os.path.isdir(target)
    if len(parts) > 1 and not folder:
        raise click.UsageError(
            f"the server gave {len(parts)} things to write: name a folder with --output"
        )
    if target == STDOUT:
        (part,) = parts.values()
        if sys.stdout.isatty():
            raise click.UsageError("--output - writes bytes as they are: not to a terminal")
        sys.stdout.flush()
        sys.stdout.buffer.write(part.content)
        return dict.fromkeys(parts, "stdout")
    saved = {}
    for number, part in parts.items():
        saved[number] = os.path.join(target, _name(number, part)) if folder else target
        try:
            # "x" in a folder: what is there already is not ours, and neither is a link.
            with open(saved[number], "xb" if folder else "wb") as file:
                file.write(part.content)
        except OSError as error:
            raise ConfigurationError(
                f"{saved[number]} cannot be written: {error.strerror}"
            ) from None
    return saved


def _name(number: int, part: Part) -> str:
    plain = ".txt" if part.mime_type.startswith("text/") else ".bin"
    return f"content-{number + 1}{_EXTENSIONS.get(part.mime_type, plain)}"


def _part(data: object, mime_type: object) -> Part:
    try:
        content = base64.b64decode(str(data), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigurationError("the server gave data that is not base64") from None
    return Part(content, _mime_type(mime_type, "application/octet-stream"))


def _mime_type(said: object, otherwise: str) -> str:
    return said.partition(";")[0].strip().lower() if isinstance(said, str) else otherwise
