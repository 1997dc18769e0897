"""Fails each file operation of what a module does, in turn, once and for good.

    python -m tests.faults.every_operation MODULE FOLDER [nineteenth | all] [preload]

The module has a context manager `cases` that yields a function: given an empty folder it returns
an object with `attempt()`, which must bear the fault and is called twice, and `recover()`, which
runs with nothing wrong and holds the outcome to what is promised. It may have `ERRORS` of its own.
Each operation fails in one way, of which the next operation has another: one of the errors, once or
for good; with `all` it fails in every way, and with `nineteenth` only each nineteenth fails at
all, which is no multiple of the number of ways, so that each way has its turn.
Operations are those of our own code, or with `preload` all of the process.
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


def main(
    module: str, root: Path, faulty: Faulty, *, in_all_ways: bool = False, step: int = 1
) -> None:
    """Go through all operations; print how many there are."""
    faulty.watch(root)
    subject = importlib.import_module(module)
    errors = getattr(subject, "ERRORS", ERRORS)
    with subject.cases() as new_case:
        ways = list(product(errors, (False, True)))
        # Whatever comes of a fault, there are no more operations after so many in vain.
        enough = len(ways) if step == 1 else 2
        for turn in range(len(ways) if in_all_ways else 1):
            spared = 0
            for number in count(1, step):
                error, lasting = ways[(number + turn) % len(ways)]
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
                spared = 0 if struck else spared + 1
                if spared == enough:
                    print(f"{number - spared * step} operations")
                    break


if __name__ == "__main__":
    if "preload" in sys.argv[3:]:
        from tests.faults.preload import Preloaded as Library
    else:
        from tests.faults.shim import Shim as Library
    main(
        sys.argv[1],
        Path(sys.argv[2]),
        Library(),
        in_all_ways="all" in sys.argv[3:],
        step=19 if "nineteenth" in sys.argv[3:] else 1,
    )
