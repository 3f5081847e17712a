import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { generateText, isStepCount, streamText, wrapLanguageModel } from "ai";
import { MockLanguageModelV4 as Mock, simulateReadableStream } from "ai/test";
import { wellkeptMiddleware, wellkeptTools } from "../dist/ai.js";
import { Client } from "../dist/index.js";
import { startServer } from "../scripts/server.mjs";

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const says = (text) => ({
  content: [{ type: "text", text }],
  finishReason: { unified: "stop", raw: "stop" },
  usage,
  warnings: [],
});
const calls = (toolName, input) => ({
  content: [{ type: "tool-call", toolCallId: "c-1", toolName, input: JSON.stringify(input) }],
  finishReason: { unified: "tool-calls", raw: "tool_calls" },
  usage,
  warnings: [],
});
const streams = (...parts) => ({ stream: simulateReadableStream({ chunks: [{ type: "stream-start", warnings: [] }, ...parts] }) });
const talks = (...pieces) => [
  { type: "text-start", id: "1" },
  ...pieces.map((delta) => ({ type: "text-delta", id: "1", delta })),
  { type: "text-end", id: "1" },
];
const finish = { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage };

let server, client;
before(async () => {
  server = await startServer();
  client = new Client({ url: server.url });
});
after(() => server?.stop());

test("memories come before an answer, and the turn is stored after it", async () => {
  const atlas = client.agent("before");
  await atlas.remember("Prefers tabs over spaces");
  const inner = new Mock({ doGenerate: says("Tabs, then.") });
  const model = wrapLanguageModel({ model: inner, middleware: wellkeptMiddleware(atlas, { sessionId: "s-before" }) });

  const { text } = await generateText({ model, prompt: "Should I use tabs or spaces?" });

  assert.equal(text, "Tabs, then.");
  const [system, user] = inner.doGenerateCalls[0].prompt;
  assert.match(system.content, /Prefers tabs over spaces/);
  assert.equal(user.role, "user");
  const stored = await atlas.messages("s-before").toArray();
  assert.deepEqual(stored.map((each) => each.content), ["Should I use tabs or spaces?", "Tabs, then."]);
});

test("memories are added to the system message there is", async () => {
  const atlas = client.agent("system");
  await atlas.remember("Prefers tabs over spaces");
  const inner = new Mock({ doGenerate: says("Tabs.") });
  const model = wrapLanguageModel({ model: inner, middleware: wellkeptMiddleware(atlas, { remember: false }) });
  await generateText({ model, instructions: "Be brief.", prompt: "Tabs or spaces?" });
  const systems = inner.doGenerateCalls[0].prompt.filter((each) => each.role === "system");
  assert.equal(systems.length, 1);
  assert.match(systems[0].content, /^Be brief\.\n\n[^]*Prefers tabs/);
});

test("without a session, the lasting facts of a turn are stored", async () => {
  const nurse = client.agent("facts").forUser("u-7");
  const inner = new Mock({ doGenerate: says("I will remember that.") });
  const model = wrapLanguageModel({ model: inner, middleware: wellkeptMiddleware(nurse) });
  await generateText({ model, prompt: "I am allergic to penicillin." });
  const [fact] = await nurse.list().toArray();
  assert.match(fact.text, /penicillin/);
  assert.equal(fact.user, "u-7");
});

test("a stream is passed on piece by piece and stored whole", async () => {
  const atlas = client.agent("stream");
  await atlas.remember("Prefers tabs over spaces");
  const inner = new Mock({ doStream: streams(...talks("Tabs, ", "then."), finish) });
  const model = wrapLanguageModel({ model: inner, middleware: wellkeptMiddleware(atlas, { sessionId: "s-stream" }) });

  const pieces = [];
  for await (const piece of streamText({ model, prompt: "Tabs or spaces?" }).textStream) pieces.push(piece);

  assert.deepEqual(pieces, ["Tabs, ", "then."]);
  assert.match(inner.doStreamCalls[0].prompt[0].content, /Prefers tabs/);
  assert.equal((await atlas.messages("s-stream").toArray())[1].content, "Tabs, then.");
});

test("a stream that breaks off is not stored", async () => {
  const atlas = client.agent("broken");
  const broken = streams(...talks("Tabs"), { type: "error", error: new Error("The model hung up") }, finish);
  const middleware = wellkeptMiddleware(atlas, { sessionId: "s-broken" });
  const model = wrapLanguageModel({ model: new Mock({ doStream: broken }), middleware });
  await streamText({ model, prompt: "Tabs or spaces?", onError: () => undefined }).consumeStream();
  assert.deepEqual(await atlas.sessions().toArray(), []);
});

test("a model uses the tools, and only its last answer is stored", async () => {
  const atlas = client.agent("tools");
  await atlas.remember("The harbour is in the north");
  const inner = new Mock({
    doGenerate: [
      calls("recall", { query: "where is the harbour?" }),
      calls("remember", { text: "Asked for the harbour", tags: ["question"] }),
      says("In the north."),
    ],
  });
  const model = wrapLanguageModel({ model: inner, middleware: wellkeptMiddleware(atlas, { sessionId: "s-tools" }) });
  const prompt = "Where is the harbour?";
  const { text, steps } = await generateText({ model, prompt, tools: wellkeptTools(atlas), stopWhen: isStepCount(5) });

  assert.equal(text, "In the north.");
  assert.match(steps[0].toolResults[0].output[0].text, /north/);
  assert.equal((await atlas.messages("s-tools").toArray()).length, 2);
  assert.equal((await atlas.search("Asked for").toArray())[0].origin, "agent");
  const { properties } = inner.doGenerateCalls[0].tools.find((each) => each.name === "read_detail").inputSchema;
  assert.deepEqual(Object.keys(properties), ["key", "offset", "lines", "tail", "grep"]);
});

test("tools read stored texts and documents", async () => {
  const atlas = client.agent("readers");
  const { search_knowledge, read_detail } = wellkeptTools(atlas);
  await client.ingest({ text: "# Refunds\n\nRefunds are paid within 14 days." });
  const { memory_key } = await atlas.storeDetail("one\ntwo\nthree");
  const use = { toolCallId: "c-1", messages: [], context: {} };
  assert.equal((await read_detail.execute({ key: memory_key, lines: "2" }, use)).content.trim(), "two");
  assert.match((await search_knowledge.execute({ query: "when are refunds paid?" }, use))[0].text, /14 days/);
});

test("a model answers although the memory is away", async () => {
  const failures = [];
  const away = new Client({ url: "http://127.0.0.1:9", retries: 0 }).agent("away");
  const middleware = wellkeptMiddleware(away, { onError: (error) => failures.push(error.code) });
  const model = wrapLanguageModel({ model: new Mock({ doGenerate: says("Hello.") }), middleware });
  assert.equal((await generateText({ model, prompt: "Hi" })).text, "Hello.");
  assert.deepEqual(failures, ["unreachable", "unreachable"]);
  assert.throws(() => wellkeptMiddleware(away, { remember: "turn" }), /sessionId/);
});
