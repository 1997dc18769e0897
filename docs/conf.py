"""How Sphinx builds the documentation: offline, and with every notebook executed."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
WIDGET_PICTURE = """
Widgets need a kernel, so this page shows a picture. `outreach-frames lab` opens this notebook with
working widgets.

```{image} ../pictures/filter_builder_light.png
:class: only-light
:alt: The filter builder
```

```{image} ../pictures/filter_builder_dark.png
:class: only-dark
:alt: The filter builder
```
"""
sys.path.insert(0, str(DOCS.parent))  # for the modules beside this one

project = "outreach_frames"
author = "The outreach_frames authors"
project_copyright = author
release = version = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"][
    "version"
]

extensions = ["myst_nb", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build"]
nitpicky = True  # a broken link is an error
toc_object_entries = False  # each object already has a heading

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3

nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_ipywidgets_js = {}  # these scripts would come from another host

highlight_language = "none"  # blocks without a language are shell commands
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output
smartquotes = False  # tables contain code
html_theme = "pydata_sphinx_theme"
html_title = "outreach_frames"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "start", "gallery/index")}  # no sidebar
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}


def collect_notebooks(_app: Sphinx) -> None:
    """Copy the notebooks and their data to the folder that Sphinx reads."""
    for folder in ("notebooks", "data"):
        shutil.rmtree(DOCS / folder, ignore_errors=True)  # with the files of the last build
        shutil.copytree(DOCS.parent / folder, DOCS / folder)
    picture_widget(DOCS / "notebooks/03_filter_builder.ipynb")


def picture_widget(path: Path) -> None:
    """Insert a picture of a notebook's widget, because a page without a kernel cannot show it."""
    notebook = nbformat.read(path, as_version=4)
    shown = [cell.source.endswith("\nbuilder") for cell in notebook.cells].index(True)
    picture = nbformat.v4.new_markdown_cell(WIDGET_PICTURE, id="picture")
    notebook.cells.insert(shown + 1, picture)
    asked = path.stat()
    nbformat.write(notebook, path)
    os.utime(path, ns=(asked.st_atime_ns, asked.st_mtime_ns))  # else it would run in every build


def make_pages(app: Sphinx) -> None:
    """Write the pages of the reference, and draw the pictures of the gallery, from the code."""
    from docs.gallery_pictures import draw_gallery  # noqa: PLC0415 - found by the path above
    from docs.reference_pages import write  # noqa: PLC0415

    write(DOCS / "reference")
    if app.config.nb_execution_mode != "off" or not (DOCS / "gallery" / "made").exists():
        draw_gallery()


def serve_llms_txt(app: Sphinx, exception: Exception | None) -> None:
    """Copy llms.txt to the site's root, with links to pages instead of sources."""
    if exception or app.builder.format != "html":
        return
    text = (DOCS.parent / "llms.txt").read_text(encoding="utf-8")
    served = re.sub(r"\(docs/([\w/-]+)\.md\)", r"(\1.html)", text)
    (Path(app.outdir) / "llms.txt").write_text(served, encoding="utf-8")


def refuse_other_hosts(app: Sphinx, exception: Exception | None) -> None:
    """Fail if a page loads a script, style, font or picture from another host."""
    if exception or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        soup = BeautifulSoup(page.read_bytes(), "html.parser")
        tags = soup.select("[src], link[rel=stylesheet], link[rel=preload], link[rel~=icon]")
        for tag in tags:
            address = str(tag.get("src") or tag.get("href"))
            if address.startswith(("http:", "https:", "//")):
                raise ExtensionError(f"{page.name} loads {address}: the site must work offline")


def setup(app: Sphinx) -> None:
    """Register the steps of this site."""
    from docs.name_links import NameLinks  # noqa: PLC0415 - found by the path above

    app.add_post_transform(NameLinks)
    app.connect("builder-inited", collect_notebooks)
    app.connect("builder-inited", make_pages)
    app.connect("build-finished", serve_llms_txt)
    app.connect("build-finished", refuse_other_hosts)
