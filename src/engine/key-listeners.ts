// Whoever wants to hear which keys look different from before. A listener is told the key alone and looks
// for itself, so nothing is kept for one that is slow.

export type KeyListener = (key: string) => void;

export class KeyListeners {
  private readonly listeners = new Set<KeyListener>();

  /** Returns the way to stop listening. */
  subscribe(listener: KeyListener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  tell(key: string): void {
    for (const listener of this.listeners) listener(key);
  }
}
