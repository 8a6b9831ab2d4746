// The receiving side of a stream: messages as they arrive, until the stream ends or breaks.

interface Reader<T> {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
}

export class MessageQueue<T> implements AsyncIterable<T> {
  private readonly messages: T[] = [];
  private reader: Reader<T> | undefined;
  private ending: { readonly error?: unknown } | undefined;
  private readonly onClosed: () => void;

  /** `onClosed` is called when the reader stops. */
  constructor(onClosed: () => void) {
    this.onClosed = onClosed;
  }

  push(message: T): void {
    if (this.ending !== undefined) return;
    const { reader } = this;
    this.reader = undefined;
    if (reader === undefined) this.messages.push(message);
    else reader.resolve({ done: false, value: message });
  }

  end(): void {
    this.finish({});
  }

  break(error: unknown): void {
    this.finish({ error });
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    return {
      next: () =>
        new Promise((resolve, reject) => {
          const [message] = this.messages.splice(0, 1);
          if (message !== undefined) resolve({ done: false, value: message });
          else if (this.ending === undefined) this.reader = { resolve, reject };
          else settle({ resolve, reject }, this.ending);
        }),
      return: () => {
        this.finish({});
        this.onClosed();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  private finish(ending: { readonly error?: unknown }): void {
    if (this.ending !== undefined) return;
    this.ending = ending;
    const { reader } = this;
    this.reader = undefined;
    if (reader !== undefined) settle(reader, ending);
  }
}

function settle<T>(reader: Reader<T>, ending: { readonly error?: unknown }): void {
  if ("error" in ending) reader.reject(ending.error);
  else reader.resolve({ done: true, value: undefined });
}
