// A door before the server's that lets everybody in: it adds the token, for a client that can be given no header.
// It prints its port, and passes on everything else as it comes, `Host` and `Origin` too.
"use strict";

const http = require("node:http");

const { url, token } = JSON.parse(process.argv[2]);
const { hostname, port } = new URL(url);

// Node closes a connection that was idle for five seconds. On a slow machine its client uses it again at that very moment.
http
  .createServer({ keepAliveTimeout: 0 }, (request, answer) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const asked = http.request({ hostname, port, path: request.url, method: request.method, headers, agent: false }, (given) => {
      answer.writeHead(given.statusCode, given.headers);
      given.pipe(answer);
    });
    asked.on("error", () => answer.destroy());
    answer.on("close", () => asked.destroy());
    request.pipe(asked);
  })
  .listen(0, "127.0.0.1", function () {
    console.log(this.address().port);
  });
