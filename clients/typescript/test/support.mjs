// What the tests share: a scripted model, and a proxy that loses answers.

import { spawn } from "node:child_process";
import { createServer, request } from "node:http";
import { once } from "node:events";
import { findPython } from "../scripts/server.mjs";

const MODEL = `
import sys
from wellkept.testing.fake_model import ModelServer, talks
with ModelServer(talks("Tabs, ", "if you ", "ask me.")) as model:
    print(model.url, flush=True)
    sys.stdin.read()
`;

/** Start an endpoint that always answers "Tabs, if you ask me.", in pieces. */
export async function startModel() {
  const child = spawn(findPython(), ["-c", MODEL], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = await once(child.stdout.setEncoding("utf8"), "data");
  return {
    url: line.trim(),
    async stop() {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}

/** Start a proxy to a server. `spoil(count, request, response)` may answer instead, or return "lose" to drop the answer. */
export async function startProxy(target, spoil) {
  const seen = [];
  const server = createServer((incoming, outgoing) => {
    seen.push({ method: incoming.method, url: incoming.url, headers: incoming.headers });
    const fate = spoil(seen.length, incoming, outgoing);
    if (fate === "answered") return;
    const { host, ...headers } = incoming.headers;
    const forwarded = request(target + incoming.url, { method: incoming.method, headers }, (answer) => {
      if (fate === "lose") {
        answer.resume().on("end", () => incoming.socket.destroy());
        return;
      }
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(forwarded);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    seen,
    stop: () => new Promise((resolve) => (server.closeAllConnections(), server.close(resolve))),
  };
}
