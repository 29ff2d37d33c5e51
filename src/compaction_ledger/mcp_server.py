"""An MCP server by which a model searches and rereads the history of one conversation (T14, T15). An extra.

Scope and conversation are those that the server was started with. The tools take neither.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import anyio
import anyio.to_thread
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from compaction_ledger.ledger import Ledger
from compaction_ledger.settings import DEFAULT_SCOPE
from compaction_ledger.usecases.history import HistorySearch
from compaction_ledger.usecases.history_tools import answer
from compaction_ledger.usecases.history_toolset import TOOLS

logger = logging.getLogger(__name__)

NAME = "compaction-ledger"
INSTRUCTIONS = (
    "The complete transcript of this conversation, also what is no longer in your context: search it, and "
    "read messages and tool results again exactly as they were."
)
_DEFECT = '{"error":{"code":"internal","message":"the call failed"}}'


def serve(
    ledger: Ledger, conversation: str, scope: str = DEFAULT_SCOPE, *, run: str | None = None
) -> None:
    """Serve one conversation over stdin and stdout, until the client closes them.

    ``run`` is the run that asks: whose messages are meant by ids alone. Raises :class:`InvalidId`.
    """
    server = make_server(ledger.history_search(conversation, scope=scope, run=run))
    anyio.run(_serve, server)


def make_server(history: HistorySearch) -> Server[Any]:
    """A server for one history, to be run on any transport."""

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_definition(name) for name in TOOLS])

    async def call_tool(
        _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        text, failed = await anyio.to_thread.run_sync(
            _call, history, params.name, params.arguments or {}
        )
        content = types.TextContent(type="text", text=text)
        return types.CallToolResult(content=[content], is_error=failed)

    return Server(
        NAME,
        version=sys.modules["compaction_ledger"].__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _call(history: HistorySearch, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    """The answer, and whether it is an error. A host's own store may raise anything: the model learns nothing
    of that, the log all.
    """
    try:
        return answer(history, name, arguments)
    except Exception:
        logger.exception("a call of %s failed", name)
        return _DEFECT, True


def _definition(name: str) -> types.Tool:
    tool = TOOLS[name]
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema(),
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
