"""Placeholder."""

from troth.register import Era

_S = {-32700: 400, -32600: 400, -32601: 404, -32020: 400, -32021: 400, -32022: 400}


def http_status(code: int, era: Era | None, *, about_meta: bool = False) -> int:
    """S."""
    if era is Era.LEGACY:
        return 200
    if era is None:
        return 400
    return 400 if about_meta and code == -32602 else _S.get(code, 200)
