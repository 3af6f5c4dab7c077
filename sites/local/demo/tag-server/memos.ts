/**
 * Debug messages between the processing server and Tag Assistant, by debug session. This process's memory
 * is enough for them, because a site has only one preview server.
 */
export interface Memos {
  post(session: string, memos: readonly unknown[]): void;
  /** The session's waiting messages. If there are none, waits at most a long poll's time; `null` if none arrived. */
  take(session: string, abandoned: AbortSignal): Promise<readonly unknown[] | null>;
}

/** The most posts that one answer has; the next poll gets the others. */
const MOST_POSTS = 5;

type Batch = readonly unknown[];

export function buildMemos({
  longPollSeconds,
  messageExpirySeconds,
}: {
  longPollSeconds: number;
  messageExpirySeconds: number;
}): Memos {
  const waiting = new Map<string, { memos: Batch; expires: number }[]>();
  const pollers = new Map<string, Set<(batch: Batch | null) => void>>();

  const takeFresh = (session: string): Batch => {
    const now = performance.now();
    const fresh = (waiting.get(session) ?? []).filter(({ expires }) => expires > now);
    const rest = fresh.slice(MOST_POSTS);
    if (rest.length > 0) waiting.set(session, rest);
    else waiting.delete(session);
    return fresh.slice(0, MOST_POSTS).flatMap(({ memos }) => memos);
  };

  return {
    post(session, memos) {
      const queue = waiting.get(session) ?? [];
      queue.push({ memos, expires: performance.now() + messageExpirySeconds * 1000 });
      waiting.set(session, queue);
      const polls = pollers.get(session);
      if (polls === undefined) return;
      const batch = takeFresh(session);
      for (const answer of polls) answer(batch);
    },
    async take(session, abandoned) {
      const waitingNow = takeFresh(session);
      if (waitingNow.length > 0) return waitingNow;
      const { promise, resolve } = Promise.withResolvers<Batch | null>();
      // A poll that has its answer stops waiting at once: what a later post gave it would be lost.
      const answer = (batch: Batch | null) => {
        polls.delete(answer);
        if (polls.size === 0 && pollers.get(session) === polls) pollers.delete(session);
        resolve(batch);
      };
      const polls = pollers.get(session) ?? new Set();
      pollers.set(session, polls.add(answer));
      const timer = setTimeout(answer, longPollSeconds * 1000, null);
      abandoned.addEventListener('abort', () => answer(null), { once: true });
      const arrived = await promise;
      clearTimeout(timer);
      return arrived === null || arrived.length === 0 ? null : arrived;
    },
  };
}
