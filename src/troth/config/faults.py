"""What is wrong with a configuration, as values: where, what, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_SHOWN = 60
"""Characters of a value that a message repeats."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that keeps a configuration from being used. Holds no secret.

    Attributes:
        file: The file, as the user named it.
        path: Dotted path of the member in it; empty for the file as a whole.
        problem: What is wrong.
        mend: What to do about it; empty where the problem says it.
        line: Line from 1; None where it is not known.
        column: Column from 1; None where it is not known or says nothing.
    """

    file: str
    path: str
    problem: str
    mend: str = ""
    line: int | None = None
    column: int | None = None

    @property
    def place(self) -> str:
        """File, line and column, as editors and CI systems read them."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)

    @property
    def words(self) -> str:
        """Path, problem and mend in one sentence, without the place."""
        path = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in self.path)
        told = f"{path}: {self.problem}" if path else self.problem
        whole = f"{told}; {self.mend}" if self.mend else told
        return whole if whole.endswith("?") else f"{whole}."

    def __str__(self) -> str:
        return f"{self.place}: {self.words}"


def shown(value: object) -> str:
    """A value that is no secret, fit for a message: quoted, escaped, not too long."""
    text = value if isinstance(value, str) else repr(value)
    if len(text) > LONGEST_SHOWN:
        text = f"{text[:LONGEST_SHOWN]}..."
    return ascii(text) if not text.isprintable() else repr(text)
