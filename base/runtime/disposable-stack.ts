/**
 * `AsyncDisposableStack` for Node 22, which lacks it; later versions have their own. Imported by the entry files that
 * need it, before anything else.
 */
class Stack implements AsyncDisposableStack {
  #callbacks: (() => unknown)[] = [];
  #disposed = false;
  readonly [Symbol.toStringTag] = 'AsyncDisposableStack';

  get disposed(): boolean {
    return this.#disposed;
  }

  use<T extends AsyncDisposable | Disposable | null | undefined>(value: T): T {
    if (value === null || value === undefined) return value;
    const dispose = Symbol.asyncDispose in value ? value[Symbol.asyncDispose] : value[Symbol.dispose];
    this.defer(() => dispose.call(value) as PromiseLike<void> | void); // what a dispose method returns
    return value;
  }

  adopt<T>(value: T, onDispose: (value: T) => PromiseLike<void> | void): T {
    this.defer(() => onDispose(value));
    return value;
  }

  defer(onDispose: () => PromiseLike<void> | void): void {
    if (this.#disposed) throw new ReferenceError('the stack is disposed already');
    this.#callbacks.push(onDispose);
  }

  move(): AsyncDisposableStack {
    if (this.#disposed) throw new ReferenceError('the stack is disposed already');
    const moved = new Stack();
    moved.#callbacks = this.#callbacks;
    this.#callbacks = [];
    this.#disposed = true;
    return moved;
  }

  /** Runs the callbacks in reverse order, all of them, and throws the last error. */
  async disposeAsync(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    let failed: { readonly error: unknown } | null = null;
    for (const callback of this.#callbacks.splice(0).reverse()) {
      try {
        await callback();
      } catch (error) {
        failed = { error };
      }
    }
    if (failed !== null) throw failed.error;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disposeAsync();
  }
}

globalThis.AsyncDisposableStack ??= Stack;
