"""Simulate a power failure after each file operation of a module, in a preloaded process.

    python -m tests.faults.every_power_failure MODULE FOLDER

The module's context manager `recorded` yields an object with two methods. `run(folder, mark)` is
recorded once. `recover(folder, marks)` is called with every folder that a power failure may leave
and the marks set before it, and checks the result.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from tests.faults.disk import power_failures, put
from tests.faults.preload import Preloaded, read_record


def main(module: str, root: Path) -> None:
    """Record the operations, recover from every power failure, and print their number."""
    library = Preloaded()
    folder, record = root / "recorded", root / "record"
    folder.mkdir()
    with importlib.import_module(module).recorded() as case:
        library.watch(folder)
        with record.open("wb", buffering=0) as file:
            library.record(file)
            case.run(folder, library.mark)
            library.record(None)
        operations = list(read_record(record))
        assert operations
        failures = 0
        for marks, found in power_failures(operations, folder):
            failures += 1
            left = root / str(failures)
            put(found, left)
            try:
                case.recover(left, marks)
            except BaseException:
                sizes = {name: content and len(content) for name, content in found.items()}
                print(f"At power failure {failures} with {sizes}, {marks}:", file=sys.stderr)
                raise
    print(f"{failures} power failures in {len(operations)} operations")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
