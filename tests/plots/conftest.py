"""Fixtures for the tests of plots: they open no window and close all figures."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.figure
import pytest

mpl.use("agg")


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
