"""`python -m troth`."""

from troth.cli import run

run()
