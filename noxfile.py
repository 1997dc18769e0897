"""All checks: `nox` runs what must pass before a change lands, `nox --list` names the others."""

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

# Sessions without an environment of their own use the one that nox is installed in.
in_this_environment = nox.session(python=False)
# Else each process that a test starts would compile the package anew.
KEEP_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
# By where they are in the wheel.
PACKAGED = {
    "outreach_frames/": "outreach_frames/",
    "outreach_frames/examples/notebooks/": "notebooks/",
    "outreach_frames/examples/data/": "data/",
}


@in_this_environment
def style(session: nox.Session) -> None:
    """Check the style, the types, also as on Windows, and the directions of imports."""
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("mypy", "--platform", "win32")
    session.run("lint-imports")


@in_this_environment
def inner(session: nox.Session) -> None:
    """Run the inner loop: the tests that take milliseconds; arguments after -- go to pytest."""
    session.run("pytest", "-m", "inner", *session.posargs, env=KEEP_BYTECODE)


@in_this_environment
def tests(session: nox.Session) -> None:
    """Run the default tests and check their coverage, or pytest with the arguments after --."""
    arguments = session.posargs or ("--cov", "--cov-report=term:skip-covered")
    session.run("pytest", *arguments, env=KEEP_BYTECODE)


@in_this_environment
def browser(session: nox.Session) -> None:
    """Run the tests of the widgets in a real browser; needs `chromium` in the PATH."""
    # A call of its own: a live browser's event loop is in the way of tests that have theirs.
    session.run("pytest", "-n", "0", "-m", "browser", "tests/browser", *session.posargs)


@in_this_environment
def docs(session: nox.Session) -> None:
    """Build the documentation offline, with every page executed; any warning is an error."""
    session.run(
        "sphinx-build", "-j", "auto", "-q", "-W", "docs", "docs/_build/html", *session.posargs
    )


@nox.session
def bare(session: nox.Session) -> None:
    """Try the wheel with no extra: what works then, and what names the extra that it needs."""
    wheel, folder = build(session)
    session.install(str(wheel), "pytest")
    session.chdir(folder)
    # Its settings and fixtures need more than is installed. The tests import the wheel, because
    # their own folder comes last.
    alone = ["--noconftest", "-c", "/dev/null", "--rootdir", ".", "--import-mode=append"]
    session.run("pytest", *alone, "tests/test_without_extras.py")
    session.run("outreach-frames", "--version")


@nox.session
def wheel(session: nox.Session) -> None:
    """Run all tests against the wheel, from an unpacked sdist; arguments after -- go to pytest."""
    wheel, folder = build(session)
    session.install(f"{wheel}[test]")
    session.chdir(folder)
    # Else processes that tests start would import these, which are not what is tried.
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
    """Have basedpyright name what has no complete type for those who use the package.

    The widgets have none: the library that they build on declares no types.
    """
    session.install(".", "basedpyright", "pandas-stubs", "pytest", "types-requests")
    verify = ("basedpyright", "--verifytypes", "outreach_frames", "--ignoreexternal")
    found = session.run(*verify, "--outputjson", silent=True, success_codes=[0, 1])
    symbols = json.loads(str(found))["typeCompleteness"]["symbols"]
    unknown = {symbol["name"] for symbol in symbols if not symbol["isTypeKnown"]}
    if others := {name for name in unknown if not name.startswith("outreach_frames.widgets.")}:
        session.error(f"Without a complete type: {', '.join(sorted(others))}.")


def build(session: nox.Session) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it; return the wheel and the unpacked sdist."""
    folder = Path(session.create_tmp())
    # By what nox runs on, so that nothing but the wheel brings packages into the session.
    session.run(sys.executable, "-m", "build", "--outdir", str(folder), external=True)
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    session.run(
        *(sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)), external=True
    )
    if missing := tracked() - set(ZipFile(wheel).namelist()):
        session.error(f"The wheel lacks {', '.join(sorted(missing))}.")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return wheel, folder / sdist.name.removesuffix(".tar.gz")


def tracked() -> set[str]:
    """Return where a wheel has the files that Git knows."""
    listed = {
        place: subprocess.check_output(["git", "ls-files", source], text=True).splitlines()
        for place, source in PACKAGED.items()
    }
    return {
        place + name.removeprefix(PACKAGED[place])
        for place, names in listed.items()
        for name in names
    }
