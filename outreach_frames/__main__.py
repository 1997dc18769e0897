"""`python -m outreach_frames`: the command line."""

from __future__ import annotations

import sys

from outreach_frames.cli import main

sys.exit(main())
