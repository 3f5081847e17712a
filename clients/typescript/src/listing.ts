/** Records of a listing, read page by page: `for await (const memory of atlas.list())`. */
export class Listing<T> implements AsyncIterable<T> {
  readonly #read: (from: string | number | undefined) => Promise<{ items: T[]; next: string | number | null }>;

  constructor(read: (from: string | number | undefined) => Promise<{ items: T[]; next: string | number | null }>) {
    this.#read = read;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page;
  }

  /** Yield one array a request. */
  async *pages(): AsyncGenerator<T[], void, undefined> {
    let from: string | number | undefined;
    do {
      const { items, next } = await this.#read(from);
      yield items;
      from = next ?? undefined;
    } while (from !== undefined);
  }

  /** Return the first records, all of them if `limit` is not given. */
  async toArray(limit = Infinity): Promise<T[]> {
    const found: T[] = [];
    if (limit <= 0) return found;
    for await (const each of this) {
      found.push(each);
      if (found.length >= limit) break;
    }
    return found;
  }
}
