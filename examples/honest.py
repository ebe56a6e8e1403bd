"""Runs a server of this folder on stdio as it is, or with Troth installed: ``python honest.py plain_sdk [install]``."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path

import anyio

import troth

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    module = import_module(sys.argv[1])
    if "install" in sys.argv[2:]:
        troth.install(module.server)
    main = getattr(module, "main", None)
    if iscoroutinefunction(main):
        anyio.run(main)
    else:
        module.server.run()
