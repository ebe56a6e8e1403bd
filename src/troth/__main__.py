"""`python -m troth`."""

from troth.cli import main

main(prog_name="troth")
