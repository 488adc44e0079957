// A server of terminals as many pages have one: node-pty behind socket.io, a shell for each socket.

import { createServer } from "node:http";
import { createRequire } from "node:module";

const require = createRequire(`${process.argv[2]}/`);
const { Server } = require("socket.io");
const pty = require("@lydell/node-pty");

const server = createServer();
new Server(server, { maxHttpBufferSize: 1e8 }).on("connection", (socket) => {
  const shell = pty.spawn("bash", [], { name: "xterm-256color", cols: 200, rows: 50, encoding: null, env: process.env });
  shell.onData((data) => socket.emit("output", data));
  shell.onExit(() => socket.disconnect());
  socket.on("input", (data) => shell.write(data));
  socket.on("disconnect", () => shell.kill());
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
