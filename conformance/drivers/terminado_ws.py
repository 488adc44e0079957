"""terminado, the terminals of Jupyter: a server of WebSockets."""

import importlib.metadata
import json
import subprocess
import sys
import threading

import websocket

from .framed import Framed, Stream

SERVER = """
import tornado.ioloop, tornado.web, terminado
terms = terminado.UniqueTermManager(shell_command=["bash"])
app = tornado.web.Application([(r"/ws", terminado.TermSocket, {"term_manager": terms})])
server = app.listen(0, "127.0.0.1")
print(next(iter(server._sockets.values())).getsockname()[1], flush=True)
tornado.ioloop.IOLoop.current().start()
"""


class Session:
    """One socket."""

    def __init__(self, port: int) -> None:
        self.socket, self.whole = websocket.create_connection(f"ws://127.0.0.1:{port}/ws", suppress_origin=True), ""
        self.stream = Stream(lambda data: self.socket.send(json.dumps(["stdin", data.decode()])))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while text := self.socket.recv():
                kind, *more = json.loads(text)
                if kind == "stdout":
                    self.stream.feed(more[0].encode())
                elif kind == "disconnect":
                    break
        except (websocket.WebSocketException, OSError):
            pass
        self.stream.feed(None)


class driver(Framed):
    """A shell for each socket."""

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.version = f"terminado {importlib.metadata.version('terminado')}"
        self.process = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    @property
    def server(self):
        return self.process.pid

    def open(self, cwd):
        session = Session(self.port)
        session.stream.prepare(cwd)
        return session

    def close(self, session):
        session.socket.close()
