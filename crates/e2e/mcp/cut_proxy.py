"""A proxy on loopback that cuts, stalls and half-closes each connection after a random number of bytes, from a seed."""

import asyncio
import contextlib
import random

# A stall costs a client its patience with a silent connection, so it is rarer.
FAULTS = ("cut", "close", "half-close") * 5 + ("stall",)
# The bytes until the fault, as powers of two: from within the head of a request to deep in the output.
MAGNITUDES = (6, 14)
PIECE = 4096


class CutProxy:
    """Between a client and the server at this address. `faults` counts what the client has suffered."""

    def __init__(self, host: str, port: int, seed: int):
        self.upstream, self.random, self.faults, self.tasks = (host, port), random.Random(seed), 0, set()
        self.counted = asyncio.Condition()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._accept, self.upstream[0], 0)
        self.url = "http://{}:{}".format(*self.server.sockets[0].getsockname())
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def suffered(self, faults: int) -> None:
        """Waits until the client has suffered so many."""
        async with self.counted:
            await self.counted.wait_for(lambda: self.faults >= faults)

    def _accept(self, reader, writer):
        task = asyncio.ensure_future(self._serve((reader, writer)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _serve(self, client):
        fault, left = self.random.choice(FAULTS), int(2 ** self.random.uniform(*MAGNITUDES))
        is_answer = self.random.random() < 0.7
        try:
            server = await asyncio.open_connection(*self.upstream)
        except OSError:
            # No server runs.
            client[1].transport.abort()
            return
        there = asyncio.ensure_future(self._pump(client[0], server[1], None if is_answer else left))
        back = asyncio.ensure_future(self._pump(server[0], client[1], left if is_answer else None))
        faulty = back if is_answer else there
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            if faulty.done() and faulty.result():
                self.faults += 1
                async with self.counted:
                    self.counted.notify_all()
                if fault == "half-close":
                    (client if is_answer else server)[1].write_eof()
                    await (there if is_answer else back)
                elif fault == "stall":
                    there.cancel()
                    await asyncio.wait((there,))
                    # Until the client gives up.
                    while await client[0].read(PIECE):
                        pass
                elif fault == "cut":
                    client[1].transport.abort()
                    server[1].transport.abort()
        except OSError:
            # One of them has gone already.
            pass
        finally:
            there.cancel()
            back.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            for end in client[1], server[1]:
                end.close()

    async def _pump(self, reader, writer, left):
        """Copies one way; true once the fault is due, false at the end."""
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(PIECE):
                is_due = left is not None and len(data) >= left
                writer.write(data[:left] if is_due else data)
                await writer.drain()
                if is_due:
                    return True
                left = None if left is None else left - len(data)
        return False
