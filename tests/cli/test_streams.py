"""Standard streams that are closed, full or narrow of character are no fault of Troth, and get no traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORMS = ("text", "json", "markdown")
QUERIES = [["--version"], ["--help"], *(["explain", "CAP-17", "--format", form] for form in FORMS)]


def troth(redirection: str, *arguments: str, **env: str) -> tuple[int, str]:
    """Exit status and standard error of the command under a shell's redirection."""
    line = f'exec "$0" -m troth "$@" {redirection}'
    words = ["sh", "-c", line, sys.executable, *arguments]
    done = subprocess.run(words, env=os.environ | env, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", QUERIES)
def test_a_full_device_is_told(arguments: list[str]) -> None:
    assert troth(">/dev/full", *arguments) == (3, "Error: No space left on device\n")


@pytest.mark.parametrize("arguments", QUERIES)
def test_a_closed_output_takes_nothing_and_is_no_fault(arguments: list[str]) -> None:
    assert troth(">&-", *arguments) == (0, "")
    assert troth(">&- 2>&-", *arguments) == (0, "")


def test_wrong_usage_is_told_by_the_exit_status_where_nobody_hears() -> None:
    assert troth(">&- 2>&-", "explain", "no-such-thing") == (2, "")


@pytest.mark.parametrize("arguments", QUERIES)
def test_an_encoding_without_the_characters_gets_escapes(arguments: list[str]) -> None:
    assert troth(">/dev/null", *arguments, PYTHONIOENCODING="ascii") == (0, "")


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1", "1e9"])
@pytest.mark.parametrize("option", ["--timeout", "--start-timeout"])
def test_a_wait_is_a_number_of_seconds_that_ends(option: str, seconds: str) -> None:
    status, told = troth("", "audit", option, seconds, "--", "true")
    assert (status, told.count("Traceback")) == (2, 0)
