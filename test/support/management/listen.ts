import { expect } from 'vitest';

/** Reads an event stream over HTTP. */
export async function listen(url: string, headers: Record<string, string>) {
  const stop = new AbortController();
  const answer = await fetch(url, {
    headers: { accept: 'text/event-stream', ...headers },
    signal: stop.signal,
  });
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  let text = '';
  const reading = (async () => {
    for await (const chunk of answer.body ?? []) text += new TextDecoder().decode(chunk);
  })().catch(() => undefined);
  const kinds = () => [...text.matchAll(/^event: (\w+)$/gm)].map(([, kind]) => kind);
  const ids = () => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => id ?? '');
  const lastId = () => ids().at(-1) ?? '';
  return { kinds, ids, lastId, text: () => text, reading, stop };
}
