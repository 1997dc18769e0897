"""Link code that names a function, such as `of.filters()`, to its reference."""

from __future__ import annotations

import re
from typing import Any, Final

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

_NAMED: Final = re.compile(r"(?:of\.|\w+\.(outreach\.))((?:\w+\.)*\w+)")
_MODULES: Final = {"of.keys", "of.plots", "of.sandbox", "of.widgets"}
_LOGGER: Final = logging.getLogger(__name__)


class NameLinks(SphinxPostTransform):
    """Insert the links, and warn about names that are missing from the reference."""

    default_priority = 5  # run before Sphinx resolves links, so that existing links stay

    def run(self, **_options: Any) -> None:
        """Link all code in a page's text."""
        objects = self.env.domaindata["py"]["objects"]
        for node in list(self.document.findall(nodes.literal)):
            found = _NAMED.match(node.astext())
            if found is None or isinstance(node.parent, nodes.reference | nodes.title):
                continue
            name = f"{'df.outreach.' if found[1] else 'of.'}{found[2]}"
            if name in objects:
                self._link(node, objects[name])
            elif name not in _MODULES:
                _LOGGER.warning("%s is not in the reference", name, location=node)

    def _link(self, node: nodes.literal, target: Any) -> None:
        link = make_refnode(
            self.app.builder,
            self.env.docname,
            target.docname,
            target.node_id,
            node.deepcopy(),
        )
        node.replace_self(link)
