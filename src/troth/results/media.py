"""Bytes, files, addresses and MIME types."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard
from urllib.parse import ParseResult, SplitResult, urlsplit

from troth.results.values import shown, text

if TYPE_CHECKING:
    from collections.abc import Mapping

Data: TypeAlias = bytes | bytearray | memoryview | PurePath | str
"""Binary data: bytes, a path (its file is read), or a string that is base64 already."""

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f\x7f]*")
_MIME: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+\s*(;.*)?", re.ASCII | re.DOTALL)

_BY_SUFFIX: Final[Mapping[str, str]] = {
    ".aac": "audio/aac",
    ".avif": "image/avif",
    ".flac": "audio/flac",
    ".jsonl": "application/jsonl",
    ".m4a": "audio/mp4",
    ".md": "text/markdown",
    ".oga": "audio/ogg",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".toml": "application/toml",
    ".wav": "audio/wav",
    ".webp": "image/webp",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
"""What older Pythons do not know, or call by a name of old."""

_MAGIC: Final[tuple[tuple[int, bytes, str], ...]] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftypavif", "image/avif"),
    (0, b"BM", "image/bmp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"fLaC", "audio/flac"),
    (0, b"OggS", "audio/ogg"),
    (4, b"ftypM4A", "audio/mp4"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
    (0, b"%PDF-", "application/pdf"),
)
"""Offset, bytes there, MIME type."""

_HEAD: Final = 24
"""Characters of base64, thus 18 bytes: more than any entry of the table above looks at."""


def is_bytes(value: object) -> TypeGuard[bytes]:
    """Whether this is binary data in memory."""
    return isinstance(value, bytes | bytearray | memoryview)


def encoded(value: object, where: str) -> str:
    """Binary data as base64.

    Args:
        value: Bytes, a path whose file is read, or a string that must be base64 already (standard alphabet, padded).
        where: What the value is, for messages.

    Raises:
        TypeError: Something else.
        ValueError: A string that is not base64, or a file that cannot be read.
    """
    if is_bytes(value):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, PurePath):
        return base64.b64encode(read(value, where)).decode("ascii")
    if not isinstance(value, str):
        raise TypeError(f"{where} must be bytes, a Path or a base64 string, not {type(value).__name__}")
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(
            f"{where} is a string, and a string must be base64 already ({error}); pass raw data as bytes"
        ) from None
    return str.__str__(value)


def read(path: PurePath, where: str) -> bytes:
    """The content of a file.

    Raises:
        ValueError: It cannot be read; the message says why.
    """
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{where}: cannot read the file {str(path)!r}: {reason}") from error


def address(value: object, where: str) -> str:
    """A URI as a string: from a string with a scheme, a path (``file://``), or a URL object of a library.

    Raises:
        TypeError: Something else.
        ValueError: A string without a scheme, or with white space or control characters.
    """
    if isinstance(value, PurePath):
        return Path(value).absolute().as_uri()
    if isinstance(value, ParseResult | SplitResult):
        value = value.geturl()
    elif not isinstance(value, str) and isinstance(getattr(value, "scheme", None), str):
        value = str(value)
    if not isinstance(value, str):
        raise TypeError(f"{where} must be a URI as a string, a URL or a Path, not {type(value).__name__}")
    if not _URI.fullmatch(value):
        raise ValueError(
            f"{where} is {shown(value)}, which is no URI: it needs a scheme such as https: or file:, and no white "
            "space or control characters; for a file pass a Path"
        )
    return text(value, where)


def mime_type(value: object, where: str) -> str:
    """A MIME type that looks like one.

    Raises:
        TypeError: It is no string.
        ValueError: It has not the form ``type/subtype``.
    """
    if not isinstance(value, str):
        raise TypeError(f"{where} must be a MIME type such as 'image/png', not {type(value).__name__}")
    if not _MIME.fullmatch(value):
        raise ValueError(f"{where} is {shown(value)}, which is no MIME type such as 'image/png'; it comes before data")
    return text(value, where)


def guess(name: object, data: str = "") -> str | None:
    """The MIME type that a path or URI has by its ending, else that base64 data has by its first bytes.

    The answer is the same on every machine: the system's own MIME tables are not asked.
    """
    suffix = _suffix(name)
    by_name = _BY_SUFFIX.get(suffix) or _python_types().guess_type(f"name{suffix}")[0]
    if by_name is not None:
        return by_name
    head = base64.b64decode(data[:_HEAD])
    return next((mime for at, magic, mime in _MAGIC if head.startswith(magic, at)), None)


@cache
def _python_types() -> mimetypes.MimeTypes:
    """Python's own table: unlike the module's functions, a fresh object leaves the system's files out."""
    return mimetypes.MimeTypes()


def _suffix(name: object) -> str:
    if isinstance(name, PurePath):
        return name.suffix.lower()
    if not isinstance(name, str):
        return ""
    try:
        return PurePath(urlsplit(name).path).suffix.lower()
    except ValueError:
        return ""
