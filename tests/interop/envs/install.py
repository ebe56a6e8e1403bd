"""Makes the environments of the interop tests in ``.envs/``.

``mcp1`` has the old Python SDK, ``npm`` the servers and SDKs from npm, ``node`` a Node.js that is new enough for
``tools``: the official conformance suite and the Inspector.

Everything is pinned by the locks beside this file. A stamp keeps the digest of what was installed, so that a second
run is quick. Where node is absent the npm part is left out with a word (and the tests that need it skip), except in
continuous integration, where it is an error.

To change a pin: edit ``mcp1.in``, ``node.in`` or a ``package.json``, then
``uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header mcp1.in -o mcp1.txt``
(or ``node``), or in the folder of the ``package.json`` ``npm install --package-lock-only --omit-lockfile-registry-resolved``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ENVS = ROOT / ".envs"
REGISTRY = "https://registry.npmjs.org/"
SECONDS = 900


def digest(*parts: Path | str) -> str:
    """Identifies what an environment is made from."""
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        whole.update(b"\0")
    return whole.hexdigest()


def run(command: list[str | Path], cwd: Path, environ: dict[str, str]) -> None:
    """Runs one step; its output is shown only when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stdout)
        raise SystemExit(f"interop envs: `{' '.join(map(str, command))}` in {cwd} ended with {done.returncode}")


def fresh(target: Path, stamp: str) -> bool:
    """Clears a target that was made from something else; tells whether it must be made."""
    mark = target / ".stamp"
    if mark.is_file() and mark.read_text() == stamp:
        return False
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    return True


def find_uv() -> str:
    """The uv of the repository, or the one named in ``UV``, or one on the path."""
    for candidate in (os.environ.get("UV", ""), str(ROOT / ".uv/bin/uv"), shutil.which("uv") or ""):
        if candidate and Path(candidate).is_file():
            return candidate
    raise SystemExit("interop envs: no uv; run `make envs`, which installs it, or set UV to its path")


def install_python(name: str, what: str) -> None:
    """A virtual environment of its own, from the lock ``name.txt``."""
    target, lock = ENVS / name, HERE / f"{name}.txt"
    stamp = digest(lock, sys.version, str(target))
    if not fresh(target, stamp):
        return
    print(f"interop envs: installing {what} into .envs/{name}", flush=True)
    uv = find_uv()
    unwanted = {"VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT", "PYTHONPATH"}
    environ = {key: value for key, value in os.environ.items() if key not in unwanted}
    run([uv, "venv", "--quiet", "--no-project", "--python", sys.executable, target], HERE, environ)
    python = target / "bin" / "python"
    run([uv, "pip", "sync", "--quiet", "--require-hashes", "--python", python, lock], HERE, environ)
    (target / ".stamp").write_text(stamp)


def odd_hosts(lock: Path) -> list[str]:
    """Packages of an npm lock that are not downloaded from the public registry, or are not pinned by a digest."""
    packages = json.loads(lock.read_text("utf-8"))["packages"]
    return [
        name
        for name, entry in packages.items()
        if name and not (entry.get("resolved", REGISTRY).startswith(REGISTRY) and entry.get("integrity"))
    ]


def install_npm(name: str, folder: Path, what: str) -> None:
    """What the npm lock in a folder pins."""
    target, lock = ENVS / name, folder / "package-lock.json"
    if odd := odd_hosts(lock):
        raise SystemExit(f"interop envs: {lock} does not pin these to {REGISTRY}: {', '.join(odd)}")
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            raise SystemExit("interop envs: node and npm are needed in CI and are not on the path")
        print(f"interop envs: node and npm are not on the path: tests with {what} will be skipped", flush=True)
        return
    stamp = digest(lock, folder / "package.json", str(target))
    if not fresh(target, stamp):
        return
    print(f"interop envs: installing {what} into .envs/{name}", flush=True)
    target.mkdir(parents=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(folder / file, target / file)
    cache = ENVS / f"{name}-cache"
    environ = {**os.environ, "npm_config_cache": str(cache), "npm_config_update_notifier": "false"}
    run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], target, environ)
    shutil.rmtree(cache, ignore_errors=True)
    (target / ".stamp").write_text(stamp)


def main() -> None:
    install_python("mcp1", "the Python SDK 1")
    install_npm("npm", HERE, "the npm servers")
    install_python("node", "Node.js")
    install_npm("tools", HERE / "tools", "the conformance suite and the Inspector")


if __name__ == "__main__":
    main()
