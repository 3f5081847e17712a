import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, WellkeptError } from "../dist/index.js";
import { startServer } from "../scripts/server.mjs";
import { startModel } from "./support.mjs";

let server, model, client, atlas;

before(async () => {
  model = await startModel();
  const environment = { WELLKEPT_OPENAI_BASE_URL: model.url, WELLKEPT_OPENAI_MODEL: "test" };
  server = await startServer({ options: [], environment });
  client = new Client({ url: server.url, key: server.key });
  atlas = client.agent("atlas");
});

after(async () => {
  await server?.stop();
  await model?.stop();
});

test("a memory is stored, found, edited, deleted and restored", async () => {
  const kept = await atlas.remember("Prefers tabs over spaces", { tags: ["preference"], metadata: { city: "Oslo" } });
  const { hits } = await atlas.recall("which indentation, tabs or spaces?", { where: "metadata.city = 'Oslo'" });
  assert.equal(hits[0].id, kept.id);
  assert.match(await atlas.recallBlock("tabs or spaces?"), /Prefers tabs/);
  assert.match(await atlas.inject("tabs or spaces?"), /Prefers tabs/);

  const edited = await atlas.update(kept.id, { text: "Prefers spaces over tabs", version: kept.version });
  assert.equal((await atlas.get(kept.id)).text, edited.text);
  assert.equal((await atlas.history(kept.id).toArray()).length, 1);
  await assert.rejects(atlas.update(kept.id, { text: "Lost", version: kept.version }), { code: "conflict", status: 409 });

  await atlas.forget(kept.id);
  await assert.rejects(atlas.get(kept.id), { code: "not_found", status: 404 });
  const fading = await atlas.remember("Gone", { expires_at: "2020-01-01T00:00:00Z" });
  assert.deepEqual((await atlas.restore(fading.id)).ids, [fading.id]);
});

test("a listing reads page after page", async () => {
  const writer = client.agent("many");
  const texts = Array.from({ length: 25 }, (_, number) => `Fact ${number} of the harbour`);
  assert.equal((await writer.rememberMany(texts)).length, 25);
  assert.deepEqual(await writer.rememberMany([]), []);

  const sizes = [];
  for await (const page of writer.list({ limit: 10 }).pages()) sizes.push(page.length);
  assert.deepEqual(sizes, [10, 10, 5]);
  const seen = [];
  for await (const memory of writer.search("harbour", { limit: 10 })) seen.push(memory.text);
  assert.deepEqual(seen.sort(), texts.sort());
  assert.equal((await writer.list({ limit: 10 }).toArray(12)).length, 12);
});

test("a batch is stored whole or not at all", async () => {
  const refused = client.agent("batch").rememberMany(["Fine", { text: "Wrong", importance: 7 }]);
  await assert.rejects(refused, (error) => error instanceof WellkeptError && error.code === "invalid" && error.details.item === 1);
  assert.deepEqual(await client.agent("batch").list().toArray(), []);
});

test("each user has memories of their own, also with names that are not ASCII", async () => {
  const ann = client.agent("shop").forUser("ånn-世界");
  const kept = await ann.remember("Takes oat milk");
  assert.equal(kept.user, "ånn-世界");
  assert.deepEqual(await client.agent("shop").forUser("bob").list().toArray(), []);
  assert.equal((await ann.list().toArray()).length, 1);
  assert.throws(() => client.agent("shop").forUser("a\nb"), { code: "invalid" });
});

test("facts of a conversation are stored and taken back", async () => {
  const nurse = client.agent("nurse");
  const added = await nurse.add([{ role: "user", content: "I am allergic to penicillin." }]);
  assert.match(added.added[0].text, /penicillin/);
  assert.equal((await nurse.decide(added.change, "undo")).state, "undone");
  assert.deepEqual(await nurse.list().toArray(), []);
});

test("a conversation is stored and becomes the next prompt", async () => {
  const [asked, answered] = await atlas.logTurn("s-1", "Where is the harbour?", "In the north.");
  assert.equal(asked.content, "Where is the harbour?");
  assert.equal(answered.role, "assistant");
  assert.equal((await atlas.messages("s-1").toArray()).length, 2);
  assert.equal((await atlas.sessions().toArray())[0].id, "s-1");
  assert.equal((await atlas.conversation("s-1")).messages.length, 2);
  const prompt = await atlas.context("And the station?", { session_id: "s-1", budget: 4000 });
  assert.equal(prompt.messages.at(-1).content, "And the station?");
});

test("long output is captured and read in parts", async () => {
  const output = Array.from({ length: 2000 }, (_, line) => `line ${line}`).join("\n");
  const captured = await atlas.capture(output, { source: "npm install", status: "success" });
  assert.equal(captured.captured, true);
  assert.equal((await atlas.readDetail(captured.memory_key, { lines: "3-4" })).content.trim(), "line 2\nline 3");
  assert.equal((await atlas.capture("ok")).text, "ok");
  const stored = await atlas.storeDetail("A long text", { description: "A file" });
  assert.equal((await atlas.details({ limit: 1 }).toArray()).length, 2);
  assert.equal((await atlas.readDetail(stored.memory_key)).content, "A long text");
});

test("items have keys and JSON values", async () => {
  for (let number = 0; number < 12; number++) await atlas.put(["users", `${number}`], "profile", { name: `Lena ${number}` });
  assert.deepEqual((await atlas.getItem(["users", "7"], "profile")).value, { name: "Lena 7" });
  assert.equal(await atlas.getItem(["users", "7"], "nothing"), null);
  assert.equal((await atlas.searchItems(["users"], { limit: 5 }).toArray()).length, 12);
  assert.equal((await atlas.searchItems(["users"], { where: "value.name = 'Lena 3'" }).toArray()).length, 1);
  assert.equal((await atlas.namespaces({ prefix: ["users"], limit: 5 }).toArray()).length, 12);
  assert.equal(await atlas.deleteItem(["users", "7"], "profile"), true);
  assert.equal(await atlas.deleteItem(["users", "7"], "profile"), false);
  await assert.rejects(atlas.getItem(["a/b"], "x"), { code: "invalid" });
});

test("documents are ingested as text and as a file, and found", async () => {
  await client.ingest({ text: "# Refunds\n\nRefunds are paid within 14 days.", category: "policy" });
  const file = new File(["# Parking\n\nThe garage opens at six."], "parking.md", { type: "text/markdown" });
  const { id } = await client.ingest({ file, title: "Parking", metadata: { floor: 2 } });
  assert.match((await client.searchKnowledge("when are refunds paid?"))[0].text, /14 days/);
  assert.match((await atlas.searchKnowledge("when does the garage open?"))[0].text, /six/);
  assert.equal((await client.documents().toArray()).length, 2);
  await client.deleteDocument(id);
  assert.equal((await client.documents().toArray()).length, 1);
});

test("agents, the audit log and erasure", async () => {
  const nora = await client.createAgent({ id: "nora", name: "Nora" });
  assert.equal((await client.updateAgent("nora", { name: "Nora B." })).name, "Nora B.");
  assert.equal((await client.getAgent(nora.id)).name, "Nora B.");
  assert.ok((await client.agents({ limit: 2 }).toArray()).some((each) => each.id === "nora"));
  await client.deleteAgent("nora");
  await assert.rejects(client.getAgent("nora"), { code: "not_found" });

  await client.recordEvent({ action: "order.refund", message: "Refund of 30 euro approved" });
  assert.equal((await client.audit({ q: "refund" }).toArray(1))[0].action, "order.refund");
  assert.equal((await client.verifyAudit()).ok, true);

  await client.agent("desk").remember("Mara Lindqvist prefers mail");
  assert.equal((await client.erase("text:Mara Lindqvist", { dry_run: true })).found.length, 1);
  assert.equal((await client.erase("text:Mara Lindqvist")).removed.memories, 1);
  assert.equal((await client.health()).status, "ok");
});

test("an agent runs, whole and as a stream", async () => {
  const answer = await atlas.run("Tabs or spaces?", { session_id: "s-9" });
  assert.equal(answer.response, "Tabs, if you ask me.");
  const events = [];
  for await (const event of atlas.runStream("Tabs or spaces?", { session_id: "s-9" })) events.push(event);
  assert.equal(events.at(-1).type, "done");
  const pieces = events.filter((event) => event.type === "delta").map((event) => event.text);
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(""), "Tabs, if you ask me.");
  assert.equal((await atlas.messages("s-9").toArray()).length, 4);
});

test("a stream that is refused throws the refusal", async () => {
  await assert.rejects(atlas.runStream("   ").next(), (error) => error instanceof WellkeptError && error.status === 400);
});

test("leaving a stream early cancels the run", async () => {
  for await (const event of atlas.runStream("Tabs or spaces?", { session_id: "s-10" })) {
    assert.equal(event.type, "delta");
    break;
  }
  const controller = new AbortController();
  const stream = atlas.runStream("Tabs or spaces?", { signal: controller.signal });
  await stream.next();
  controller.abort();
  await assert.rejects(async () => {
    for await (const _ of stream);
  }, { name: "AbortError" });
});

test("refusals say what is wrong", async () => {
  await assert.rejects(new Client({ url: server.url, key: "wellkept_wrong" }).agents().toArray(), {
    name: "WellkeptError",
    code: "unauthorized",
    status: 401,
  });
  const secret = atlas.remember("The password is hunter2-Xq9vLw71Zt, token ghp_16C7e42F292c6912E7710c838347Ae178B4a");
  await assert.rejects(secret, (error) => error.code === "secret_rejected" && error.requestId !== "" && error.details.rule !== "");
  await assert.rejects(client.agent("..").list().toArray(), { code: "not_found" });
  assert.throws(() => new Client({ url: "ftp://example.org" }), { code: "invalid" });
  assert.throws(() => new Client({ url: server.url, key: "two words" }), { code: "invalid" });
  assert.throws(() => new Client({ timeout: 0 }), { code: "invalid" });
});
