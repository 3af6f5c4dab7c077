/** The longest body that the hops behind the edge pass on. */
const MAX_OCTETS = 8 * 1_048_576;

/** Changes one parameter; `null` removes it. */
type Change = (name: string, value: string) => Promise<string | null> | string | null;

/** Changes the parameters of `a=1&b=2`; those that stay the same keep their spelling. */
async function changedPairs(text: string, change: Change): Promise<string> {
  const pairs = await Promise.all(
    text.split('&').map(async (pair) => {
      const [[name, value] = ['', '']] = new URLSearchParams(pair);
      if (name === '') return pair;
      const changed = await change(name, value);
      if (changed === null) return null;
      return changed === value ? pair : `${encodeURIComponent(name)}=${encodeURIComponent(changed)}`;
    }),
  );
  return pairs.filter((pair) => pair !== null).join('&');
}

/** Changes the parameters of a body: JSON, or lines of `a=1&b=2`. Nothing is left of JSON that can't be parsed. */
async function changedBody(text: string, change: Change): Promise<string> {
  if (/^\s*[[{]/.test(text)) {
    const value = jsonOf(text);
    return value === undefined ? '' : JSON.stringify(await changedJson(value, change));
  }
  const lines = await Promise.all(text.split('\n').map((line) => changedPairs(line, change)));
  return lines.join('\n');
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function changedJson(value: unknown, change: Change): Promise<unknown> {
  if (Array.isArray(value)) return await Promise.all(value.map((each) => changedJson(each, change)));
  if (!(value instanceof Object)) return value;
  const members = await Promise.all(
    Object.entries(value).map(async ([name, own]) => {
      const isText = ['string', 'number', 'boolean'].includes(typeof own);
      const text = isText ? String(own) : JSON.stringify(own);
      const changed = await change(name, text);
      if (changed === null) return [];
      // A list or object that is hashed is hashed as a whole.
      if (changed !== text) return [[name, changed]];
      return [[name, isText ? own : await changedJson(own, change)]];
    }),
  );
  return Object.fromEntries(members.flat());
}

async function boundedText(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let octets = 0;
  for await (const chunk of body) {
    octets += chunk.byteLength;
    if (octets > MAX_OCTETS) throw new TypeError('the body is too long');
    chunks.push(chunk);
  }
  // Bytes that are no text would arrive as others.
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(
    await new Blob(chunks).arrayBuffer(),
  );
}

/**
 * The request with changed parameters, in its query and its body. The body is changed once it has arrived.
 * Rejects if it is compressed or multipart; one that is no UTF-8 text breaks off.
 */
export async function changedHit(request: Request, headers: Headers, change: Change): Promise<Request> {
  const { method, body } = request;
  const at = request.url.indexOf('?');
  const url =
    at === -1
      ? request.url
      : `${request.url.slice(0, at)}?${await changedPairs(request.url.slice(at + 1), change)}`;
  if (method === 'GET' || method === 'HEAD' || body === null) return new Request(url, { method, headers });
  if (headers.has('content-encoding')) throw new TypeError('a compressed body');
  if (/^\s*multipart\//i.test(headers.get('content-type') ?? '')) throw new TypeError('a multipart body');
  // The core refuses a longer body by its stated length.
  if (!(Number(headers.get('content-length')) > MAX_OCTETS)) headers.delete('content-length');
  const changed = new ReadableStream({
    async start(controller) {
      try {
        const text = await changedBody(await boundedText(body), change);
        controller.enqueue(new TextEncoder().encode(text));
        controller.close();
      } catch (error) {
        controller.error(error);
      }
    },
  });
  return new Request(url, { method, headers, body: changed });
}
