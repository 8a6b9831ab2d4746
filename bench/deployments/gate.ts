// Holds back a control plane's stream and its digests, so that everything is ready when the measurement starts.
export class Gate {
  private opened: Promise<void> = Promise.resolve();
  private letGo: () => void = () => undefined;

  close(): void {
    this.opened = new Promise((resolve) => {
      this.letGo = resolve;
    });
  }

  open(): void {
    this.letGo();
  }

  whenOpen(): Promise<void> {
    return this.opened;
  }

  async *guard<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
    for await (const message of messages) {
      await this.opened;
      yield message;
    }
  }
}
