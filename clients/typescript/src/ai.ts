import { jsonSchema, tool, type LanguageModelMiddleware, type Tool } from "ai";
import type { AgentClient } from "./agent.js";

type Prompt = Parameters<NonNullable<LanguageModelMiddleware["wrapGenerate"]>>[0]["params"]["prompt"];

export interface MemoryOptions {
  /** The conversation. Its turns are stored in it; without one, only the lasting facts of a turn are stored. */
  sessionId?: string;
  /** What to store after an answer: the turn, its lasting facts, or nothing. Default: the turn if there is a `sessionId`. */
  remember?: "turn" | "facts" | false;
  /** How many memories to add to a prompt. Default: 5. */
  limit?: number;
  /** Lowest score of a memory, 0 to 1. Default: that of the server. */
  minRelevance?: number;
  /** Receives what failed; the model still answers. Default: `console.warn`. */
  onError?: (error: unknown) => void;
}

/**
 * Return a middleware that adds memories to each prompt and stores each answer:
 * `wrapLanguageModel({ model, middleware: wellkeptMiddleware(atlas) })`.
 */
export function wellkeptMiddleware(agent: AgentClient, options: MemoryOptions = {}): LanguageModelMiddleware {
  const { sessionId, remember = sessionId === undefined ? "facts" : "turn", limit = 5, minRelevance } = options;
  const warn = options.onError ?? ((error) => console.warn("wellkept:", error));
  if (remember === "turn" && sessionId === undefined) throw new TypeError("Storing turns needs a `sessionId`.");

  async function store(question: string, answer: string): Promise<void> {
    if (remember === false || !question.trim() || !answer.trim()) return;
    try {
      if (remember === "turn") {
        await agent.logTurn(sessionId as string, question, answer);
      } else {
        const said = [{ role: "user", content: question }, { role: "assistant", content: answer }];
        await agent.add(said, { session_id: sessionId });
      }
    } catch (error) {
      warn(error);
    }
  }

  return {
    specificationVersion: "v4",
    async transformParams({ params }) {
      const question = findQuestion(params.prompt);
      if (!question.trim()) return params;
      try {
        const call = { limit, min_relevance: minRelevance, signal: params.abortSignal };
        const block = await agent.recallBlock(question, call);
        return block ? { ...params, prompt: addToSystem(params.prompt, block) } : params;
      } catch (error) {
        params.abortSignal?.throwIfAborted();
        warn(error);
        return params;
      }
    },
    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      // A call of a tool is followed by another request, which has the answer.
      if (!result.content.some((part) => part.type === "tool-call" && !part.providerExecuted)) {
        const texts = result.content.map((part) => (part.type === "text" ? part.text : ""));
        await store(findQuestion(params.prompt), texts.join(""));
      }
      return result;
    },
    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      let answer = "";
      let isComplete = false;
      let isFinal = true;
      const watch = new TransformStream({
        transform(part, controller) {
          if (part.type === "text-delta") answer += part.delta;
          if (part.type === "finish") isComplete = true;
          if (part.type === "error" || (part.type === "tool-call" && !part.providerExecuted)) isFinal = false;
          controller.enqueue(part);
        },
        // Before the end of the stream: serverless hosts stop a function when its answer ends.
        async flush() {
          if (isComplete && isFinal) await store(findQuestion(params.prompt), answer);
        },
      } satisfies Transformer<StreamPart, StreamPart>);
      return { stream: stream.pipeThrough(watch), ...rest };
    },
  };
}

type StreamPart =
  Awaited<ReturnType<NonNullable<LanguageModelMiddleware["wrapStream"]>>> extends { stream: ReadableStream<infer Part> }
    ? Part
    : never;

/** Return the text of the latest message of the user. */
function findQuestion(prompt: Prompt): string {
  const message = prompt.findLast((each) => each.role === "user");
  return message?.role === "user"
    ? message.content.map((part) => (part.type === "text" ? part.text : "")).filter(Boolean).join("\n")
    : "";
}

/** Append a text to the system message; some providers accept only one. */
function addToSystem(prompt: Prompt, text: string): Prompt {
  const [first, ...others] = prompt;
  return first?.role === "system"
    ? [{ ...first, content: `${first.content}\n\n${text}` }, ...others]
    : [{ role: "system", content: text }, ...prompt];
}

const text = (description: string) => ({ type: "string", description }) as const;
const count = (description: string) => ({ type: "integer", description }) as const;

function makeTool<I extends object, O>(
  description: string,
  properties: Record<string, object>,
  required: (keyof I & string)[],
  execute: (input: I, signal: AbortSignal | undefined) => Promise<O>,
): Tool<I, O> {
  const inputSchema = jsonSchema<I>({ type: "object", properties, required, additionalProperties: false } as never);
  return tool({
    description,
    inputSchema,
    execute: (input: I, { abortSignal }: { abortSignal?: AbortSignal }) => execute(input, abortSignal),
  } as never) as Tool<I, O>;
}

/** Return tools by which a model reads and writes the memory of an agent. */
export function wellkeptTools(agent: AgentClient) {
  return {
    remember: makeTool(
      "Keep one short, lasting fact about the user or the work, to be shown to you again in later conversations " +
        "when it matters. Never store passwords, tokens or other secrets.",
      {
        text: text("The fact, in one or two sentences (at most 500 characters)."),
        tags: { type: "array", items: { type: "string" }, description: "Up to 5 words to sort it by." },
        supersedes: text("The id of the fact this one corrects or replaces, such as m-4."),
      },
      ["text"],
      async ({ text, ...rest }: { text: string; tags?: string[]; supersedes?: string }, signal) => {
        const { id } = await agent.remember(text, { ...rest, origin: "agent", signal });
        return { id };
      },
    ),
    recall: makeTool(
      "Ask your memory a question in your own words. Answers with what fits best, best first. " +
        "Use it before a task to see what you know about it.",
      { query: text("What you want to know."), limit: count("How many results, 5 if not given, 20 at most.") },
      ["query"],
      async ({ query, limit = 5 }: { query: string; limit?: number }, signal) => {
        const { hits } = await agent.recall(query, { limit: Math.min(limit, 20), signal });
        return hits.map(({ id, text, score }) => ({ id, text, score }));
      },
    ),
    search_knowledge: makeTool(
      "Look something up in the documents of your organisation. Answers with the passages that fit best, " +
        "each with the title of its document.",
      { query: text("What you want to know."), limit: count("How many passages, 5 if not given, 20 at most.") },
      ["query"],
      async ({ query, limit = 5 }: { query: string; limit?: number }, signal) =>
        agent.searchKnowledge(query, { limit: Math.min(limit, 20), signal }),
    ),
    read_detail: makeTool(
      "Read the text behind a reference such as [MemoryRef: npm-install-x7k2m9qp - log, 812 lines]. " +
        "Ask for what you need: grep for errors, tail for how it ended, lines.",
      {
        key: text("The key behind [MemoryRef: in your context."),
        offset: count("Where to begin, in characters; the next_offset of an answer."),
        lines: text('These lines, such as "120-180".'),
        tail: count("This many lines from the end."),
        grep: text("Only lines that fit this regular expression."),
      },
      ["key"],
      async (
        { key, ...part }: { key: string; offset?: number; lines?: string; tail?: number; grep?: string },
        signal,
      ) => agent.readDetail(key, { ...part, signal }),
    ),
  };
}
