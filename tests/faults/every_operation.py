"""Fails each file operation of what a module does, in turn, once and for good.

    python -m tests.faults.every_operation MODULE FOLDER [preload]

The module has a context manager `cases` that yields a function: given an empty folder it returns
an object with `attempt()`, which must bear the fault and is called twice, and `recover()`, which
runs with nothing wrong and holds the outcome to what is promised. It may have `ERRORS` of its own.
Operations are those of our own
code, or with `preload` all of the process.
"""

from __future__ import annotations

import errno
import importlib
import sys
from itertools import count, product
from pathlib import Path
from typing import Protocol

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


class Faulty(Protocol):
    """What can fail the operation of a number."""

    @property
    def struck(self) -> bool:
        """Whether an operation was failed."""

    def watch(self, folder: Path) -> None:
        """Count the operations below this folder."""

    def fail(self, number: int, error: int, *, lasting: bool) -> None:
        """Fail the operation of that number; 0 for none."""


def main(module: str, root: Path, faulty: Faulty) -> None:
    """Go through all operations; print how many there are."""
    faulty.watch(root)
    subject = importlib.import_module(module)
    errors = getattr(subject, "ERRORS", ERRORS)
    with subject.cases() as new_case:
        for error, lasting in product(errors, (False, True)):
            for number in count(1):
                where = f"{errno.errorcode[error]} lasting={lasting} operation={number}"
                folder = root / f"{error}-{lasting}-{number}"
                folder.mkdir()
                case = new_case(folder)
                struck = False
                try:
                    for _ in ("a first run", "a second one"):
                        faulty.fail(number, error, lasting=lasting)
                        case.attempt()
                        struck |= faulty.struck
                    faulty.fail(0, 0, lasting=False)
                    case.recover()
                except BaseException:
                    print(f"At {where}:", file=sys.stderr)
                    raise
                if not struck:
                    print(f"{number - 1} operations, {where}")
                    break


if __name__ == "__main__":
    if sys.argv[3:] == ["preload"]:
        from tests.faults.preload import Preloaded

        main(sys.argv[1], Path(sys.argv[2]), Preloaded())
    else:
        from tests.faults.shim import Shim

        main(sys.argv[1], Path(sys.argv[2]), Shim())
