"""FastMCP's client at a server: a line of JSON in is a call, a line out is its whole answer."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def main(server: dict):
    """Drives it until the lines end."""
    if "url" in server:
        way = StreamableHttpTransport(server["url"], headers={"Authorization": f"Bearer {server['token']}"})
    else:
        way = StdioTransport(**server, keep_alive=False)
    async with Client(way) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            call = json.loads(line)
            if "tool" in call:
                result = await client.call_tool_mcp(call["tool"], call["arguments"])
                answer = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            else:
                answer = sorted(tool.name for tool in await client.list_tools())
            print(json.dumps(answer), flush=True)


asyncio.run(main(json.loads(sys.argv[1])))
