import type { components } from "./api.js";
import { WellkeptError } from "./errors.js";

/** One event of a running agent: a piece of its answer, a tool that it used, or the end. */
export type RunEvent =
  | { type: "delta"; text: string }
  | { type: "tool"; name: string; ok: boolean }
  | ({ type: "done" } & components["schemas"]["AnswerBody"]);

/** Yield the events of an agent run. Leaving the loop early cancels the run. */
export async function* readRun(answer: Response): AsyncGenerator<RunEvent, void, undefined> {
  for await (const { event, data } of readEvents(answer)) {
    if (event === "error") {
      const requestId = answer.headers.get("X-Request-Id") ?? "";
      throw new WellkeptError(String(data["error"]), { code: String(data["code"]), status: answer.status, requestId });
    }
    yield { type: event, ...data } as RunEvent;
    if (event === "done") return;
  }
  throw new WellkeptError("The server hung up before the answer was complete.", { code: "unreachable" });
}

async function* readEvents(answer: Response): AsyncGenerator<{ event: string; data: Record<string, unknown> }> {
  if (!answer.body || !answer.headers.get("Content-Type")?.startsWith("text/event-stream")) {
    throw new WellkeptError("The answer is not a stream of events.", { code: "unexpected_answer", status: answer.status });
  }
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let buffer = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // A line may end between the two bytes of CRLF, so normalise the whole buffer.
      buffer = (buffer + decoder.decode(value, { stream: !done })).replace(/\r\n/g, "\n");
      const blocks = buffer.split("\n\n");
      buffer = blocks.pop() ?? "";
      yield* blocks.map(parseEvent).filter((each) => each !== undefined);
      if (done) return;
    }
  } catch (cause) {
    if (cause instanceof TypeError) {
      throw new WellkeptError("The server hung up.", { code: "unreachable", cause });
    }
    throw cause;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parseEvent(block: string): { event: string; data: Record<string, unknown> } | undefined {
  const read = (name: string) =>
    block
      .split("\n")
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /, ""))
      .join("\n");
  const data = read("data");
  // Comments keep a connection open.
  return data ? { event: read("event") || "message", data: JSON.parse(data) } : undefined;
}
