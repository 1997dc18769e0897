"""Serve the tools to an agent's program by the Model Context Protocol, over stdin and stdout."""

from __future__ import annotations

import logging
from functools import partial
from importlib.metadata import version
from typing import Any, Final

import anyio
import anyio.to_thread
import orjson
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from outreach_frames.agents.tools import TOOLS, Agent
from outreach_frames.common.cancellation import CancellationToken, bind_thread
from outreach_frames.common.progress import current_listener
from outreach_frames.common.text import printable, quoted
from outreach_frames.common.warnings import collect_warnings
from outreach_frames.errors import OutreachError

_LOGGER: Final = logging.getLogger(__name__)
_SECONDS_BETWEEN_REPORTS: Final = 0.5
# The tools create files, and change nothing else.
_ANNOTATIONS: Final = types.ToolAnnotations(read_only_hint=False, destructive_hint=False)


class _Work:
    """One call of a tool in a thread, with its progress and its cancellation."""

    def __init__(self) -> None:
        self.token: Final = CancellationToken()
        self._done, self._total, self._what, self._status = 0.0, None, "", ""

    def run(self, agent: Agent, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Call a tool, and return its reply or its error."""
        bind_thread(self.token, self._set_status)
        current_listener.set(self._set_progress)
        with collect_warnings() as warnings:
            try:
                reply = agent.call(name, arguments)
            except OutreachError as error:
                return _error("\n".join([str(error), *getattr(error, "__notes__", ())]))
            except Exception as error:  # one failed call must not end the server
                _LOGGER.exception("the tool %s failed", name)
                return _error(f"{name} failed ({type(error).__name__}). Check the arguments.")
        if warnings:
            reply["warnings"] = warnings
        text = types.TextContent(type="text", text=orjson.dumps(reply).decode())
        return types.CallToolResult(content=[text], structured_content=reply)

    async def watch(self, ctx: ServerRequestContext[Any]) -> None:
        """Report progress until the call ends or is cancelled; then cancel the thread's work."""
        reported, sent = -1.0, None
        try:
            while True:
                await anyio.sleep(_SECONDS_BETWEEN_REPORTS)
                now = self._done, self._total, self._status or self._what
                if now != sent:
                    # The protocol requires that the number grows.
                    reported, sent = max(self._done, reported + 0.001), now
                    await ctx.session.report_progress(reported, self._total, now[2])
        finally:
            self.token.set()

    def _set_progress(self, done: float, total: float | None, what: str) -> None:
        self._done, self._total, self._what = done, total, what

    def _set_status(self, status: str) -> None:
        self._status = printable(status)


def _error(message: str) -> types.CallToolResult:
    text = types.TextContent(type="text", text=printable(message, keep="\n"))
    return types.CallToolResult(content=[text], is_error=True)


async def _list_tools(
    _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(
                name=name,
                description=tool.description,
                input_schema=dict(tool.schema),
                annotations=_ANNOTATIONS,
            )
            for name, tool in TOOLS.items()
        ]
    )


async def _call_tool(
    agent: Agent, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    if params.name not in TOOLS:
        return _error(f"There is no tool {quoted(params.name)}. The tools are {', '.join(TOOLS)}.")
    work = _Work()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work.watch, ctx)
        # A cancelled call waits for its thread, which the token interrupts.
        reply = await anyio.to_thread.run_sync(work.run, agent, params.name, params.arguments or {})
        tasks.cancel_scope.cancel()
    return reply


async def _serve(agent: Agent) -> None:
    server: Server[Any] = Server(
        "outreach-frames",
        version=version("outreach-frames"),
        on_list_tools=_list_tools,
        on_call_tool=partial(_call_tool, agent),
    )
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def serve(agent: Agent) -> None:
    """Serve the tools until the agent's program closes the connection."""
    anyio.run(_serve, agent)
