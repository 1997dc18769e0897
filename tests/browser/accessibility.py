"""Accessibility checks of widgets: axe-core's rules, and use by keyboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axe_playwright_python.base import AXE_SCRIPT

if TYPE_CHECKING:
    from playwright.sync_api import Locator

# The headings before a widget belong to the host.
_RUN = """element => axe.run(element, {
    resultTypes: ['violations'],
    rules: {'heading-order': {enabled: false}},
})"""
_CONTROLS = (
    ":is(a[href], button, input, select, textarea, summary, [tabindex='0']):visible:not(:disabled)"
    ":not([type='radio']:not(:checked))"
)
_IS_FOCUSED = "element => element.getRootNode().activeElement === element"
# Some controls show the focus on the box around them.
_SHOWS_FOCUS = """element => [element, element.closest('.ops-tags')].some(one => {
    if (one === null) return false;
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
    return (outlineStyle !== 'none' && parseFloat(outlineWidth) > 0) || boxShadow !== 'none';
})"""


def violations(element: Locator) -> list[str]:
    """Return axe-core's violations for people with a screen reader or impaired vision.

    Examples
    --------
    >>> violations(notebook.widget)
    ['serious: color-contrast: <span class="ops-label">Name</span>: ...']
    """
    # Lab's module loader would treat the script as an AMD module.
    element.page.evaluate(f"() => {{ const define = undefined; {AXE_SCRIPT} }}")
    found = element.evaluate(_RUN)["violations"]
    return [
        f"{rule['impact']}: {rule['id']}: {node['html']}: {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


def tab_to(control: Locator) -> None:
    """Press Tab until a control has the focus."""
    for _ in range(300):
        if control.evaluate(_IS_FOCUSED):
            assert control.evaluate(_SHOWS_FOCUS), control
            return
        control.page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {control}")


def press(control: Locator, key: str = "Enter") -> None:
    """Move the focus to a control with Tab, and press a key."""
    tab_to(control)
    # The page may redraw the control in between, and the control then loses the focus.
    control.press(key)


def out_of_reach(widget: Locator) -> list[str]:
    """Return the controls that Tab does not reach, or that do not show the focus."""
    controls = widget.locator(_CONTROLS).all()
    # The page shows the focus only to keyboard users.
    controls[0].focus()
    controls[0].press("Tab")
    controls[0].page.keyboard.press("Shift+Tab")
    left = []
    for control in controls:
        if not (control.evaluate(_IS_FOCUSED) and control.evaluate(_SHOWS_FOCUS)):
            left.append(control.evaluate("element => element.outerHTML"))
        control.page.keyboard.press("Tab")
    return left
