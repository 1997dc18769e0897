"""Run the command line with `python -m outreach_frames`."""

from __future__ import annotations

import sys

from outreach_frames.cli import main

sys.exit(main())
