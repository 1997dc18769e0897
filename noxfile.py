"""All checks: `nox` runs the required ones, and `nox --list` shows all."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import nox

nox.options.sessions = ["style", "tests", "browser", "docs", "bare"]
nox.options.default_venv_backend = "venv"
nox.options.stop_on_first_error = True

# Sessions that run in nox's own environment.
in_this_environment = nox.session(python=False)
# Without bytecode files each process that a test starts would compile the package again.
KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}


@in_this_environment
def style(session: nox.Session) -> None:
    """Check the style, the types (also for Windows) and the directions of imports."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("mypy", "--platform", "win32")
    session.run("lint-imports")


@in_this_environment
def inner(session: nox.Session) -> None:
    """Run only the tests that take milliseconds; arguments after -- go to pytest."""
    session.run("pytest", "-m", "inner", *session.posargs, env=KEEP_BYTECODE)


@in_this_environment
def tests(session: nox.Session) -> None:
    """Run the default tests and check their coverage; arguments after -- go to pytest instead."""
    arguments = session.posargs or ("--cov", "--cov-report=term:skip-covered")
    session.run("pytest", *arguments, env=KEEP_BYTECODE)


@in_this_environment
def browser(session: nox.Session) -> None:
    """Run the tests of the widgets in a real browser; needs `chromium` in the PATH."""
    # Run separately: a live browser's event loop breaks tests that start their own.
    session.run("pytest", "-n", "0", "-m", "browser", "tests/browser", *session.posargs)


@in_this_environment
def docs(session: nox.Session) -> None:
    """Build the documentation offline and execute every page; any warning is an error."""
    session.run(
        "sphinx-build", "-j", "auto", "-q", "-W", "docs", "docs/_build/html", *session.posargs
    )


@in_this_environment
def results(session: nox.Session) -> None:
    """Make the pictures and the notebooks' results anew; needs `chromium` in the PATH."""
    session.run("python", "-m", "docs.pictures")
    session.run("python", "-m", "docs.run_notebooks")


@nox.session
def bare(session: nox.Session) -> None:
    """Test the wheel without extras: functions work, or name the missing extra."""
    wheel, folder = build(session)
    session.install(str(wheel), "pytest")
    session.chdir(folder)
    # The repository's pytest settings and fixtures need packages that are missing here.
    # With `append` the tests import the installed wheel.
    alone = ["--noconftest", "-c", "/dev/null", "--rootdir", ".", "--import-mode=append"]
    session.run("pytest", *alone, "tests/test_without_extras.py")
    session.run("outreach-frames", "--version")


@nox.session
def wheel(session: nox.Session) -> None:
    """Run all tests against the wheel, from an unpacked sdist; arguments after -- go to pytest."""
    wheel, folder = build(session)
    session.install(f"{wheel}[test]")
    session.chdir(folder)
    # Otherwise processes that tests start would import these folders instead of the wheel.
    shutil.rmtree("outreach_frames")
    Path("pytest_outreach_frames.py").unlink()
    session.run("pytest", *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def pythons(session: nox.Session) -> None:
    """Run the default tests on each Python in the PATH; arguments after -- go to pytest."""
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def oldest(session: nox.Session) -> None:
    """Run the tests on the oldest allowed versions of all dependencies."""
    session.install("-e", ".[test]")
    session.run("pytest", "-m", "oldest")


@nox.session
def types(session: nox.Session) -> None:
    """Check with basedpyright that all public names have complete types.

    Widgets are exempt, because their base classes declare no types.
    """
    session.install(".", "basedpyright", "pandas-stubs", "pytest", "types-requests")
    verify = ("basedpyright", "--verifytypes", "outreach_frames", "--ignoreexternal")
    found = session.run(*verify, "--outputjson", silent=True, success_codes=[0, 1])
    symbols = json.loads(str(found))["typeCompleteness"]["symbols"]
    unknown = {symbol["name"] for symbol in symbols if not symbol["isTypeKnown"]}
    if others := {name for name in unknown if not name.startswith("outreach_frames.widgets.")}:
        session.error(f"Without a complete type: {', '.join(sorted(others))}.")


def build(session: nox.Session) -> tuple[Path, Path]:
    """Build the sdist and a wheel from it; return the wheel and the unpacked sdist."""
    folder = Path(session.create_tmp())
    # Build with nox's Python, so that the session contains only the wheel's dependencies.
    session.run(sys.executable, "-m", "build", "--outdir", str(folder), external=True)
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    session.run(
        *(sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)), external=True
    )
    packed = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    if different := tracked() ^ packed:
        session.error(f"The wheel lacks, or has too much: {', '.join(sorted(different))}.")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return wheel, folder / sdist.name.removesuffix(".tar.gz")


def tracked() -> set[str]:
    """Return the package's files that Git tracks."""
    packaged = ["outreach_frames", "pytest_outreach_frames.py"]
    return set(subprocess.check_output(["git", "ls-files", *packaged], text=True).splitlines())
