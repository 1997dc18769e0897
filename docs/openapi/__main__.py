"""Write the document that the sandbox serves: ``python -m docs.openapi``."""

from __future__ import annotations

from docs.openapi.document import PATH, document

PATH.write_bytes(document())
