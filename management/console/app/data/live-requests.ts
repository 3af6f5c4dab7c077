import { useEffect, useRef } from 'preact/hooks';
import type { Query } from './query.ts';
import { followStream } from './stream.ts';

/** The most milliseconds until a reported request is in the sums, if everything runs on one machine. */
const COUNTED_MS = 1_200;
const POLL_MS = 400;

/** Polls the container’s traffic at once when requests are reported, and until the sums have them. */
export function useLiveRequests(id: string, { poll }: Query<unknown>): void {
  const latest = useRef(poll);
  latest.current = poll;
  useEffect(() => {
    let until = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const step = () => {
      latest.current();
      timer = Date.now() < until ? setTimeout(step, POLL_MS) : undefined;
    };
    const end = followStream(`/server-containers/${encodeURIComponent(id)}/requests/live`, {
      kinds: ['request', 'gap'],
      onEvent: () => {
        until = Date.now() + COUNTED_MS;
        timer ??= setTimeout(step, 0);
      },
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [id]);
}
