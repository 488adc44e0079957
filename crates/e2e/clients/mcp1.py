"""The official Python SDK 1.x at a server: a line of JSON in is a call, a line out is its whole answer."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(server: dict):
    """Drives it until the lines end."""
    if "url" in server:
        streams = streamablehttp_client(server["url"], headers={"Authorization": f"Bearer {server['token']}"})
    else:
        streams = stdio_client(StdioServerParameters(**server))
    async with AsyncExitStack() as stack:
        read, write, *_ = await stack.enter_async_context(streams)
        client = await stack.enter_async_context(ClientSession(read, write))
        await client.initialize()
        while line := await asyncio.to_thread(sys.stdin.readline):
            call = json.loads(line)
            if "tool" in call:
                result = await client.call_tool(call["tool"], call["arguments"])
                answer = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            else:
                answer = sorted(tool.name for tool in (await client.list_tools()).tools)
            print(json.dumps(answer), flush=True)


asyncio.run(main(json.loads(sys.argv[1])))
