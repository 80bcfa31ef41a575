"""The official MCP SDK for Python asks the history of a gateway, by stdio and by HTTP, in both ages of the protocol."""

import asyncio
import re
import subprocess
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

program, data = sys.argv[1:3]
TOOLS = ["search_history", "get_tool_result", "list_sessions", "session_summary"]


async def ask(server, mode):
    async with Client(server, mode=mode) as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == TOOLS, tools

        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result
            return result.content[0].text

        found = await call("search_history", query="what did reading notes.txt return?")
        pair = re.search(r"\[([^\]]+/[a-z2-9]{8})\]", found)
        assert pair, found
        read = await call("get_tool_result", id=pair.group(1))
        assert "alpha" in read, read
        session = pair.group(1).split("/")[0]
        assert session in await call("list_sessions")
        assert "The user asked:" in await call("session_summary", session=session)
        resources = (await client.list_resources()).resources
        text = (await client.read_resource(str(resources[0].uri))).contents[0].text
        assert "user said" in text, text
        refused = await client.call_tool("search_history", {})
        assert refused.is_error and "give a `query`" in refused.content[0].text, refused


async def main():
    stdio = StdioServerParameters(command=program, args=["mcp", "--data", data])
    for mode in ["auto", "legacy"]:
        await ask(stdio, mode)
    command = [program, "mcp", "--data", data, "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = re.search(r"http://\S+", server.stdout.readline()).group(0)
        for mode in ["auto", "legacy"]:
            await ask(url, mode)
    finally:
        server.terminate()
    assert server.wait() == 0
    print("the MCP SDK for Python: stdio and HTTP, with and without a handshake")


asyncio.run(main())
