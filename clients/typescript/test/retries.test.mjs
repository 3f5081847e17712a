import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { Client } from "../dist/index.js";
import { startServer } from "../scripts/server.mjs";
import { startProxy } from "./support.mjs";

let server;
before(async () => (server = await startServer()));
after(() => server?.stop());

async function through(spoil, use, options = {}) {
  const proxy = await startProxy(server.url, spoil);
  try {
    await use(new Client({ url: proxy.url, ...options }), proxy.seen);
  } finally {
    await proxy.stop();
  }
}

const refuse = (status, headers = {}, body = "busy") => (count, _, response) => {
  if (count > 2) return "forward";
  response.writeHead(status, headers).end(body);
  return "answered";
};

for (const [name, spoil] of [
  ["429", refuse(429, { "Retry-After": "0" }, '{"ok":false,"error":"Slower","code":"rate_limited"}')],
  ["503 with Retry-After", refuse(503, { "Retry-After": "0" }, '{"ok":false,"error":"Busy","code":"overloaded"}')],
  ["502 of a gateway", refuse(502)],
  ["503 of a gateway", refuse(503, { "Retry-After": new Date().toUTCString() })],
]) {
  test(`a request is repeated after ${name}`, () =>
    through(spoil, async (client, seen) => {
      const { text } = await client.agent("busy").remember("Kept");
      assert.equal(text, "Kept");
      assert.equal(seen.length, 3);
      const keys = new Set(seen.map((each) => each.headers["idempotency-key"]));
      assert.equal(keys.size, 1);
      assert.match([...keys][0], /^[0-9a-f]{32}$/);
    }));
}

test("a lost answer does not write twice", () =>
  through((count) => (count === 1 ? "lose" : "forward"), async (client, seen) => {
    const agent = client.agent("lossy");
    const kept = await agent.remember("Written once");
    assert.equal(seen.length, 2);
    const all = await agent.list().toArray();
    assert.deepEqual(all.map((each) => each.id), [kept.id]);
  }));

test("a deletion whose answer was lost has succeeded", async () => {
  const { id } = await new Client({ url: server.url }).agent("gone").remember("Deleted once");
  await through((count) => (count === 1 ? "lose" : "forward"), async (client, seen) => {
    await client.agent("gone").forget(id);
    assert.equal(seen.length, 2);
  });
});

test("an edit whose answer was lost is not repeated", async () => {
  const { id } = await new Client({ url: server.url }).agent("edit").remember("Old");
  await through((count) => (count === 1 ? "lose" : "forward"), async (client, seen) => {
    await assert.rejects(client.agent("edit").update(id, { text: "New" }), { code: "unreachable", status: 0 });
    assert.equal(seen.length, 1);
  });
});

test("reads have no Idempotency-Key, and a refusal is not repeated", () =>
  through(() => "forward", async (client, seen) => {
    await client.agent("a").recall("anything");
    await assert.rejects(client.agent("a").get("m-404"), { code: "not_found" });
    assert.equal(seen.length, 2);
    assert.equal(seen[0].headers["idempotency-key"], undefined);
  }));

test("retries end, and can be switched off", async () => {
  const always = (_, __, response) => (response.writeHead(502).end(), "answered");
  await through(always, async (client, seen) => {
    await assert.rejects(client.agent("a").get("m-1"), { code: "unexpected_answer", status: 502 });
    assert.equal(seen.length, 3);
  }, { retries: 2 });
  await through(always, async (client, seen) => {
    await assert.rejects(client.agent("a").get("m-1"), { status: 502 });
    assert.equal(seen.length, 1);
  }, { retries: 0 });
});

test("a long Retry-After is left to the caller", () =>
  through(refuse(429, { "Retry-After": "3600" }, '{"ok":false,"error":"Slower","code":"rate_limited"}'), async (client, seen) => {
    await assert.rejects(client.agent("a").recall("x"), { code: "rate_limited", retryAfter: 3600 });
    assert.equal(seen.length, 1);
  }));

test("a server that does not answer times out, or is aborted", async () => {
  const silent = createServer(() => undefined);
  await new Promise((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const client = new Client({ url: `http://127.0.0.1:${silent.address().port}`, timeout: 0.2 });
  await assert.rejects(client.agent("a").recall("x"), { code: "timeout", status: 0 });
  const controller = new AbortController();
  const call = client.agent("a").recall("x", { signal: controller.signal, timeout: 600 });
  controller.abort();
  await assert.rejects(call, { name: "AbortError" });
  await assert.rejects(client.agent("a").recall("x", { signal: AbortSignal.abort() }), { name: "AbortError" });
  silent.closeAllConnections();
  await new Promise((resolve) => silent.close(resolve));
});

test("aborting ends a pause between retries", () =>
  through((_, __, response) => (response.writeHead(502, { "Retry-After": "19" }).end(), "answered"), async (client, seen) => {
    const controller = new AbortController();
    const call = client.agent("a").recall("x", { signal: controller.signal });
    while (seen.length === 0) await new Promise(setImmediate);
    setTimeout(() => controller.abort(), 50);
    await assert.rejects(call, { name: "AbortError" });
    assert.equal(seen.length, 1);
  }));

test("an address without a server, or with another one, is named", async () => {
  const nobody = new Client({ url: "http://127.0.0.1:9", retries: 1 });
  await assert.rejects(nobody.agent("a").update("m-1", { text: "x" }), { code: "unreachable", message: /cannot be reached/ });
  await through((_, __, response) => (response.writeHead(200).end("<html>"), "answered"), async (client) => {
    await assert.rejects(client.agent("a").recall("x"), { code: "unexpected_answer", status: 200 });
  });
  await through((_, __, response) => (response.writeHead(302, { Location: "/x" }).end(), "answered"), async (client) => {
    await assert.rejects(client.agent("a").recall("x"), { code: "unexpected_answer", status: 302 });
  });
});
