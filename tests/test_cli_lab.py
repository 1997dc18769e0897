"""`outreach-frames lab` starts JupyterLab with copies of the notebooks, and a sandbox."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from outreach_frames.cli import main
from outreach_frames.commands.lab import copy_examples
from tests import forked

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
PATIENCE = 60


@pytest.fixture(autouse=True)
def jupyter_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep JupyterLab's files in the test's own folder, and set an account that is never used."""
    folder = tmp_path / "jupyter"
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(folder))
    for variable in ("OUTREACH_BASE_URL", "OUTREACH_API_KEY", "OUTREACH_PROFILE"):
        monkeypatch.setenv(variable, "https://account.example")
    return folder


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts the command with options."""
    started = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "outreach_frames", "lab", "--no-browser", *options]
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:
            process.terminate()


def wait_for_server(folder: Path, session: requests.Session, process: subprocess.Popen[str]) -> str:
    """Return JupyterLab's address after it has responded, and set the session's token."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
        for file in folder.glob("jpserver-*.json"):
            # JupyterLab writes the file before the server listens.
            with contextlib.suppress(json.JSONDecodeError, requests.ConnectionError):
                server = json.loads(file.read_bytes())
                assert server["token"]
                session.headers["Authorization"] = f"token {server['token']}"
                session.get(f"{server['url']}api/status", timeout=PATIENCE).raise_for_status()
                return str(server["url"])
    process.terminate()
    raise AssertionError(process.communicate())


def descendants(pid: int) -> list[Any]:
    """Return the descendants of a process."""
    import psutil

    return psutil.Process(pid).children(recursive=True)


def test_lab_serves_notebooks_until_it_is_stopped(
    jupyter_folder: Path, lab: Callable[..., subprocess.Popen[str]]
) -> None:
    """JupyterLab serves its page, starts a notebook's kernel, and stopping leaves no process."""
    import psutil

    process = lab("--people", "60")
    with requests.Session() as session:
        session.trust_env = False
        url = wait_for_server(jupyter_folder, session, process)
        assert "JupyterLab" in session.get(f"{url}lab", timeout=PATIENCE).text
        notebook = {"path": "notebooks/01_quickstart.ipynb", "type": "notebook"}
        kernel = {"kernel": {"name": "python3"}}
        made = session.post(f"{url}api/sessions", json=notebook | kernel, timeout=PATIENCE)
    assert made.status_code == 201
    running = descendants(process.pid)
    assert len(running) >= 2
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert psutil.wait_procs(running, timeout=PATIENCE)[1] == []


def write_fake_jupyterlab(folder: Path, code: str) -> str:
    """Write a fake JupyterLab, because the real one takes seconds; return the path to import it."""
    (folder / "jupyterlab").mkdir()
    (folder / "jupyterlab/__init__.py").touch()
    (folder / "jupyterlab/__main__.py").write_text(code)
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


def test_a_second_ctrl_c_kills_jupyterlab(
    tmp_path: Path, lab: Callable[..., subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JupyterLab that does not stop after the first Ctrl-C is killed after the second."""
    import psutil

    code = (
        "import pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: pathlib.Path('terminated').touch())\n"
        "pathlib.Path('started').touch()\n"
        "while True:\n"
        "    time.sleep(0.01)\n"
    )
    monkeypatch.setenv("PYTHONPATH", write_fake_jupyterlab(tmp_path, code))
    process = lab("--people", "20")
    for name in ("started", "terminated"):
        while process.poll() is None and not (tmp_path / name).exists():
            time.sleep(0.01)
        running = descendants(process.pid)
        process.send_signal(signal.SIGINT)
    assert running
    assert process.wait(PATIENCE) == 0
    assert psutil.wait_procs(running, timeout=PATIENCE)[1] == []


def test_lab_ends_when_jupyterlab_does(tmp_path: Path) -> None:
    """JupyterLab's processes use the sandbox; if it fails, the command stops with the exit code."""
    code = (
        "import sys, outreach_frames as of\n"
        "of.connect(cache=None)\n"
        "sys.exit(' '.join([*sys.argv[1:], f'{of.count_people()} people']))\n"
    )
    paths = write_fake_jupyterlab(tmp_path, code)
    own = tmp_path / "outreach-notebooks/notebooks/01_quickstart.ipynb"
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    done = forked.run_command(
        *("lab", "--no-browser", "--people", "20", "--port", "8765"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 1
    assert "--ServerApp.port=8765 --ServerApp.port_retries=0" in done.stderr
    assert "20 people" in done.stderr
    assert "outreach-frames: JupyterLab ended with exit code 1" in done.stderr
    assert "existing files were kept" in done.stdout
    assert own.read_text() == "{}"
    assert "Traceback" not in done.stderr
    url = re.findall(r"listens at (http://\S+);", done.stdout)[0]
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=PATIENCE)


def test_copies_that_were_changed_are_kept(tmp_path: Path) -> None:
    """Existing copies are never overwritten, and missing files are copied."""
    folder = tmp_path / "new" / "copies"
    copy_examples(folder)
    copied = {file.relative_to(folder).as_posix() for file in folder.rglob("*.*")}
    examples = {f"notebooks/{file.name}" for file in (ROOT / "notebooks").glob("*.ipynb")}
    examples |= {f"data/{file.name}" for file in (ROOT / "data").iterdir()}
    assert copied == examples
    changed = folder / "notebooks/01_quickstart.ipynb"
    changed.write_text("mine")
    missing = folder / "data/territories.csv"
    missing.unlink()
    copy_examples(folder)
    assert changed.read_text() == "mine"
    assert missing.read_bytes() == (ROOT / "data/territories.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--folder", "file"], "cannot be written"), (["--people", "0"], "people must be at least 1")],
)
def test_lab_rejects_an_invalid_folder_or_world(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    words: str,
) -> None:
    """A folder or world that cannot be created is wrong usage with a one-line message."""
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert main(["lab", *options]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_lab_needs_the_sandbox(tmp_path: Path) -> None:
    """Without the sandbox's packages the command says how to install them, and copies nothing."""
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from outreach_frames.cli import main\n"
        "sys.exit(main(['lab']))"
    )
    done = forked.run(code, cwd=tmp_path)
    assert done.returncode == 2
    assert 'pip install "outreach-frames[sandbox]"' in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_extra_brings_what_the_notebooks_import() -> None:
    """`pip install "outreach-frames[lab]"` is enough to run every notebook."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    def names(requirements: list[str]) -> set[str]:
        found = set()
        for one in requirements:
            name, inner = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", one).groups()  # type: ignore[union-attr]
            found.add(name.lower().replace("-", "_"))
            if name == "outreach-frames":
                found |= {deep for extra in inner.split(",") for deep in names(extras[extra])}
        return found

    imported = {"outreach_frames"}
    for file in (ROOT / "notebooks").glob("*.ipynb"):
        for cell in json.loads(file.read_bytes())["cells"]:
            lines = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
            imported |= set(re.findall(r"^ *(?:import|from) (\w+)", lines, re.MULTILINE))
    available = names(project["dependencies"]) | names(extras["lab"])
    assert imported - set(sys.stdlib_module_names) <= available
