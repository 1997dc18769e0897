"""How Sphinx builds the documentation: offline, and with every notebook executed."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from functools import partialmethod
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from bs4 import BeautifulSoup
from jupyter_client import KernelManager
from sphinx.errors import ExtensionError
from sphinx.util.index_entries import split_index_msg

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
# Common search words, each with the page that the search must find first: an `index` directive of
# the page names the word.
SEARCHES = {
    "GDPR": "how-to/remove-a-person",
    "job changers": "how-to/job-changers",
    "contacted recently": "how-to/contacted-recently",
    "left a customer": "how-to/left-a-customer",
    "upload": "how-to/sequence",
    "unsubscribe": "how-to/unsubscribed",
    "dedupe": "how-to/dedupe",
    "CRM": "how-to/crm-exports",
    "exclude": "how-to/without-the-crm",
    "uplift": "how-to/hold-out",
    "cost": "explanation/scale",
    "email address": "how-to/people-to-contacts",
    "rate limit": "how-to/rate-limits",
    "proxy": "how-to/proxies-and-certificates",
    "Excel": "how-to/excel",
    "unhashable": "how-to/list-columns",
}
WIDGET_PICTURE = """
Widgets need a kernel, so this page shows a picture. `jupyter lab notebooks` opens this notebook
with working widgets.

```{{image}} ../pictures/{0}_light.png
:class: only-light
:alt: The widget that this cell shows
```

```{{image}} ../pictures/{0}_dark.png
:class: only-dark
:alt: The widget that this cell shows
```
"""
sys.path.insert(0, str(DOCS.parent))  # so that the modules of this folder can be imported

from docs.run_pages import hash_code  # noqa: E402 - found by the path above

project = "outreach_frames"
author = "The outreach_frames authors"
project_copyright = author
metadata = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
release = version = metadata["version"]

extensions = ["myst_nb", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build", "reference/functions.rst"]  # index.md includes the latter
nitpicky = True  # a broken link is an error
toc_object_entries = False  # each object already has a heading

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3

nb_custom_formats = {".md": "docs.run_pages.read_page"}
nb_execution_mode = "cache"  # results are kept until the code changes
nb_execution_cache_path = str(DOCS / "_build" / "cache" / hash_code())
os.environ["XDG_CACHE_HOME"] = str(DOCS / "_build" / "cache")  # not the user's cache
# These pages show no results, or show pictures of them.
# The notebooks hold their results, which `check_notebooks` compares with a new run.
nb_execution_excludepatterns = ["explanation/*", "gallery/*", "widgets/*", "notebooks/*"]
nb_execution_timeout = 120
nb_execution_raise_on_error = nb_execution_show_tb = True
# Kernels warn about connections without encryption; myst-nb has no option for that.
KernelManager.__init__ = partialmethod(KernelManager.__init__, transport_encryption="auto")  # type: ignore[method-assign, assignment]
os.environ["IPYKERNEL_CELL_NAME"] = "cell"  # in warnings, instead of a temporary file
nb_merge_streams = True
nb_ipywidgets_js = {}  # the default loads scripts from another host

highlight_language = "none"  # blocks without a language are shell commands
copybutton_exclude = ".linenos, .gp, .go"  # prompts and output
smartquotes = False  # tables contain code
html_theme = "pydata_sphinx_theme"
html_title = "outreach_frames"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "start", "gallery/**")}  # no sidebar
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": True,
    "show_toc_level": 2,
    "logo": {"text": f"outreach_frames {version}"},
    "icon_links": [
        {"name": name, "url": url, "icon": "fa-solid fa-code"}
        for name, url in metadata.get("urls", {}).items()
    ],
    "footer_start": ["copyright", "code"],
    "footer_end": [],
}


def collect_notebooks(_app: Sphinx) -> None:
    """Copy the notebooks and their data to the folder that Sphinx reads."""
    for folder in ("notebooks", "data"):
        shutil.rmtree(DOCS / folder, ignore_errors=True)  # remove the files of the last build
        shutil.copytree(DOCS.parent / folder, DOCS / folder)
    picture_widgets(DOCS / "notebooks/03_filter_builder.ipynb")


def check_notebooks(app: Sphinx) -> None:
    """Fail if the stored results of a notebook differ from what its code prints."""
    from docs.run_notebooks import changed_notebooks  # noqa: PLC0415 - found by the path above

    if app.config.nb_execution_mode == "off":
        return
    if changed := changed_notebooks():
        raise ExtensionError(f"{', '.join(changed)}: other results than stored; run nox -s results")


def picture_widgets(path: Path) -> None:
    """Insert the pictures that cells name in their metadata, since a page cannot run widgets."""
    notebook = nbformat.read(path, as_version=4)
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if name := cell.metadata.get("picture"):
            picture = WIDGET_PICTURE.format(name)
            cells.append(nbformat.v4.new_markdown_cell(picture, id=f"{cell.id}-picture"))
            cell.outputs = []  # stored with a picture
    notebook.cells = cells
    asked = path.stat()
    nbformat.write(notebook, path)
    os.utime(path, ns=(asked.st_atime_ns, asked.st_mtime_ns))  # or Sphinx rebuilds the page


def make_pages(app: Sphinx) -> None:
    """Write the reference pages and draw the gallery's pictures."""
    from docs.gallery_pictures import draw_gallery  # noqa: PLC0415 - found by the path above
    from docs.reference_pages import write  # noqa: PLC0415

    write(DOCS / "reference")
    if app.config.nb_execution_mode != "off" or not (DOCS / "gallery" / "made").exists():
        draw_gallery()


def serve_llms_txt(app: Sphinx, exception: Exception | None) -> None:
    """Copy llms.txt to the site's root, and link to pages instead of sources."""
    if exception or app.builder.format != "html":
        return
    text = (DOCS.parent / "llms.txt").read_text(encoding="utf-8")
    served = re.sub(r"\(docs/([\w/-]+)\.md\)", r"(\1.html)", text)
    (Path(app.outdir) / "llms.txt").write_text(served, encoding="utf-8")


def restore_index_entries(app: Sphinx) -> list[object]:
    """Restore the index entries of unchanged pages, which the search loses in later builds."""
    known = app.builder.indexer._index_entries  # type: ignore[attr-defined]
    for page, entries in app.env.domains.index_domain.entries.items():
        words = {
            (word, target, main)
            for kind, text, target, main, _ in entries
            for word in split_index_msg(kind, text)
        }
        known.setdefault(page, sorted(words))
    return []  # no further pages


def check_search(app: Sphinx, exception: Exception | None) -> None:
    """Fail if a search for a common word does not show its page first.

    Sphinx shows the pages whose main index entry is the typed text before all others.
    """
    if exception or app.builder.format != "html":
        return
    entries = app.builder.indexer._index_entries  # type: ignore[attr-defined]
    for typed, page in SEARCHES.items():
        found = [
            name
            for name, named in entries.items()
            if any(text.lower() == typed.lower() and main == "main" for text, _, main in named)
        ]
        if found != [page]:
            raise ExtensionError(f"a search for {typed!r} shows {found} first, not {page}")


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
    """Connect these functions to Sphinx's events."""
    from docs.name_links import NameLinks  # noqa: PLC0415 - found by the path above
    from docs.number_columns import NumberColumns  # noqa: PLC0415 - the same

    app.add_post_transform(NameLinks)
    app.add_post_transform(NumberColumns)
    app.connect("builder-inited", check_notebooks)
    app.connect("builder-inited", collect_notebooks)
    app.connect("builder-inited", make_pages)
    app.connect("html-collect-pages", restore_index_entries)
    app.connect("build-finished", serve_llms_txt)
    app.connect("build-finished", check_search)
    app.connect("build-finished", refuse_other_hosts)
