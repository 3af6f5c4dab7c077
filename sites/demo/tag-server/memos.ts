/** Debug messages between Tag Assistant and the server. They are in this process only: a site has one preview server. */
export interface Memos {
  post(message: string): void;
  /** All waiting messages, or those that arrive within the long poll; `null` if none did. */
  take(abandoned: AbortSignal): Promise<readonly string[] | null>;
  /** True while a poll is open or messages wait. */
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
      for (const endPoll of pollers) endPoll();
    },
    async take(abandoned) {
      const waitingNow = takeFresh();
      if (waitingNow.length > 0) return waitingNow;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, longPollSeconds * 1000);
      abandoned.addEventListener('abort', () => resolve(), { once: true });
      pollers.add(resolve);
      await promise;
      clearTimeout(timer);
      pollers.delete(resolve);
      if (abandoned.aborted) return null;
      const arrived = takeFresh();
      return arrived.length > 0 ? arrived : null;
    },
    active: () => pollers.size > 0 || waiting.length > 0,
  };
}
