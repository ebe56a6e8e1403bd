"""Puts the gateway together and runs it until a signal or the end of standard input."""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)
