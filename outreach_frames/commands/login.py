"""The commands `login` and `logout`: keep a token in the system's keyring, and remove it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import outreach_frames as of
from outreach_frames import spec
from outreach_frames.client.profiles import DEFAULT_PROFILE
from outreach_frames.commands.options import Command, call, option
from outreach_frames.commands.terminal import print_result


def _run_login(options: argparse.Namespace) -> None:
    with call(of.login, options) as client:
        print_result(
            f"The token for {client.base_url} is accepted, and the system's keyring has it as the "
            f"profile {options.profile}."
        )


_PROFILE: Final = option(
    "--profile", metavar="NAME", default=DEFAULT_PROFILE, help=f"its name ({DEFAULT_PROFILE})"
)

LOGIN: Final = Command(
    "login",
    "store the service's address and the token in the system's keyring",
    "Ask for the service's address and the token, try them, and store them in the system's "
    "keyring. A profile that works already is kept.",
    (
        option("base_url", nargs="?", metavar="ADDRESS", help="the service's address"),
        _PROFILE,
        option("--verify", type=Path, default=True, metavar="FILE", help="certificate authorities"),
        option(
            "--network-name",
            metavar="NAME",
            default=spec.NETWORK_NAME,
            help=f"the network's name in the service's field names ({spec.NETWORK_NAME})",
        ),
    ),
    _run_login,
)
LOGOUT: Final = Command(
    "logout",
    "remove a stored token",
    "Remove a profile of `outreach-frames login` from the system's keyring, if it is there.",
    (_PROFILE,),
    lambda options: call(of.logout, options),
)
