"""The embedded sandbox: a real HTTP service on loopback that implements the whole interface."""

from outreach_frames.sandbox.faults import KINDS, Fault
from outreach_frames.sandbox.service import Sandbox, serve

# The effect of each kind of fault.
FAULT_KINDS = {name: kind.description for name, kind in KINDS.items()}

__all__ = ["FAULT_KINDS", "Fault", "Sandbox", "serve"]


def __dir__() -> list[str]:
    return __all__
