// Holds back what a control plane would send, so that all of it is there when the time begins.
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

  async *guard<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
    for await (const message of messages) {
      await this.opened;
      yield message;
    }
  }
}
