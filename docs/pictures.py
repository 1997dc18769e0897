"""Take the pictures of README and the site: the filter builder, and a plot.

Run ``python -m docs.pictures``. It takes half a minute and needs `chromium` and the extra `test`.
The people are the sandbox's, so the pictures change only if the code changes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib.pyplot as plt
from PIL import Image

import outreach_frames as of
from docs.gallery_pictures import STYLES, save_plot
from tests.browser.lab import DARK, LIGHT, Notebook, connect_to, opened_lab, running_lab

if TYPE_CHECKING:
    from outreach_frames.sandbox import Sandbox

FOLDER: Final = Path(__file__).parent / "pictures"
LARGEST: Final = 100_000  # bytes
_THEMES: Final = {"light": LIGHT, "dark": DARK}
_COLORS: Final = 64
_BUILDER: Final = """
builder = of.widgets.PeopleSearch(
    {
        "person_seniorities": ["manager", "director", "vp"],
        "person_departments": ["revenue", "marketing"],
        "person_exclude_locations": ["United States"],
    },
    limit=500,
)
builder
"""


def main() -> None:
    """Take all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with of.sandbox.serve() as sandbox:
        picture_builder(sandbox)
        picture_plot(sandbox)
    for picture in sorted(FOLDER.iterdir()):
        size = picture.stat().st_size
        print(f"{picture.name}: {size:,} bytes")
        if size > LARGEST:
            raise SystemExit(f"{picture.name} is over {LARGEST:,} bytes.")


def picture_builder(sandbox: Sandbox) -> None:
    """Take pictures of the filter builder in a real notebook."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_lab(Path(folder), sandbox.api_key) as url,
        opened_lab(url, device_scale_factor=2) as (page, watched),
    ):
        taken = Path(folder)
        notebook = Notebook(page, watched, taken / "files", taken)
        notebook.run(connect_to(sandbox), _BUILDER)
        notebook.wait_until("builder.total is not None")
        for name, theme in _THEMES.items():
            notebook.theme(theme)
            keep(notebook.screenshot(f"filter_builder_{name}"))
        notebook.close()


def picture_plot(sandbox: Sandbox) -> None:
    """Draw the plot of README."""
    with of.connect(sandbox.url, sandbox.api_key, cache=None):
        people = of.search_people(
            person_seniorities=["director", "vp"], person_departments=["revenue"], limit=None
        )
    for name, style in STYLES.items():
        with plt.style.context(style):
            figure: Any = of.plots.headcount(people).figure
            save_plot(figure, FOLDER / f"headcount_{name}.png")
            plt.close(figure)


def keep(picture: Path) -> None:
    """Save a picture with few colours, to make it small."""
    with Image.open(picture) as image:
        few = image.convert("RGB").quantize(_COLORS, dither=Image.Dither.NONE)
        few.save(FOLDER / picture.name, optimize=True)


if __name__ == "__main__":
    main()
