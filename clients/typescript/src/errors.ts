/** Codes of refusals that programs handle; a newer server may have others. */
export type ErrorCode =
  | "invalid"
  | "secret_rejected"
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "idempotency_conflict"
  | "idempotency_in_progress"
  | "idempotency_no_answer"
  | "too_large"
  | "unprocessable"
  | "over_budget"
  | "rate_limited"
  | "internal"
  | "model"
  | "timeout"
  | "store"
  | "store_busy"
  | "overloaded"
  /** The server cannot be reached, or hung up. */
  | "unreachable"
  /** Something else answered, such as a proxy. */
  | "unexpected_answer"
  | (string & {});

/** Describes a request that was refused or failed. */
export class WellkeptError extends Error {
  override readonly name = "WellkeptError";
  /** The reason, for programs. */
  readonly code: ErrorCode;
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** The id of the request in the server's log. */
  readonly requestId: string;
  /** Seconds after which a retry can succeed. */
  readonly retryAfter: number | undefined;
  /** What else the server says: the position of a refused `item`, the `rule` of a refused secret. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    message: string,
    { code, status = 0, requestId = "", retryAfter, details = {}, cause }: {
      code: ErrorCode;
      status?: number;
      requestId?: string;
      retryAfter?: number | undefined;
      details?: Record<string, unknown>;
      cause?: unknown;
    },
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
    this.details = details;
  }
}
