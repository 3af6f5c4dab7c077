/** Debug messages between the tag assistant and the server, in this process only: a preview server is exactly one. */
export interface Memos {
  post(message: string): void;
  /** All waiting messages, or those that come within the long poll; `null` where none did. */
  take(abandoned: AbortSignal): Promise<readonly string[] | null>;
  /** True while somebody polls or messages wait. */
  active(): boolean;
}

export function buildMemos({
  longPollSeconds,
  messageExpirySeconds,
}: {
  longPollSeconds: number;
  messageExpirySeconds: number;
}): Memos {
  let waiting: { message: string; expires: number }[] = [];
  const pollers = new Set<() => void>();

  const takeFresh = (): readonly string[] => {
    const now = performance.now();
    const messages = waiting.filter(({ expires }) => expires > now).map(({ message }) => message);
    waiting = [];
    return messages;
  };

  return {
    post(message) {
      waiting.push({ message, expires: performance.now() + messageExpirySeconds * 1000 });
      for (const wake of pollers) wake();
    },
    async take(abandoned) {
      const there = takeFresh();
      if (there.length > 0) return there;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, longPollSeconds * 1000);
      abandoned.addEventListener('abort', () => resolve(), { once: true });
      pollers.add(resolve);
      await promise;
      clearTimeout(timer);
      pollers.delete(resolve);
      if (abandoned.aborted) return null;
      const come = takeFresh();
      return come.length > 0 ? come : null;
    },
    active: () => pollers.size > 0 || waiting.length > 0,
  };
}
