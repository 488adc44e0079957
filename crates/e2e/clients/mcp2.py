"""The official Python SDK 2.x at a server: a line of JSON in is a call, a line out is its whole answer."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main(server: dict, **options):
    """Calls the server until the lines end."""
    async with AsyncExitStack() as stack:
        if "url" in server:
            headers = {"Authorization": f"Bearer {server['token']}"}
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
            streams = streamable_http_client(server["url"], http_client=http)
        else:
            streams = stdio_client(StdioServerParameters(**server))
        client = await stack.enter_async_context(Client(streams, **options))
        while line := await asyncio.to_thread(sys.stdin.readline):
            call = json.loads(line)
            if "tool" in call:
                result = await client.call_tool(call["tool"], call["arguments"])
                answer = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            else:
                answer = sorted(tool.name for tool in (await client.list_tools()).tools)
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
