import { request } from 'undici';

interface Question {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'OPTIONS';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies: readonly string[];
  readonly text: string;
}

/** Sends a request and reads the whole answer. A header that is sent several times is joined. */
export async function ask(
  base: string,
  path: string,
  { method = 'GET', headers = {}, body }: Question = {},
): Promise<Answer> {
  const answer = await request(`${base}${path}`, {
    method,
    headers: { ...headers },
    // Opens a new connection for each request: a kept one would be dead once the server was stopped.
    reset: true,
    ...(body === undefined ? {} : { body }),
  });
  const cookies = [answer.headers['set-cookie'] ?? []].flat();
  const joined = Object.entries(answer.headers).map(([name, value]) => [name, [value].flat().join(', ')]);
  return {
    status: answer.statusCode,
    headers: Object.fromEntries(joined),
    cookies,
    text: await answer.body.text(),
  };
}
