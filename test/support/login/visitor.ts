/** A browser without a page: it keeps cookies by host and port, follows redirects, and submits forms. */
export class Visitor {
  readonly #jars = new Map<string, Map<string, string>>();

  /** One request. Redirects aren't followed. */
  async request(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const { host } = new URL(url);
    const jar = this.#jars.get(host) ?? new Map<string, string>();
    this.#jars.set(host, jar);
    const headers = new Headers(init.headers);
    const cookies = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    if (cookies !== '') headers.set('cookie', cookies);
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
      const [name = '', value = ''] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
      const isGone = attributes.some((part) => /^(max-age=0|expires=Thu, 01 Jan 1970.*)$/i.test(part));
      if (isGone || value === '') jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }

  /** Follows redirects until an answer isn't one, or `until` matches the next address. Also returns the last address. */
  async visit(url: string | URL, until?: RegExp, init: RequestInit = {}): Promise<Visit> {
    let address = new URL(url);
    let response = await this.request(address, init);
    for (let hops = 0; hops < 15; hops += 1) {
      const location = response.headers.get('location');
      if (response.status < 300 || response.status > 399 || location === null) break;
      address = new URL(location, address);
      if (until?.test(address.href)) return { url: address, response, text: '' };
      response = await this.request(address);
    }
    return { url: address, response, text: await response.text() };
  }

  /** Submits the form of a page as its button does. */
  async submit({ url, text }: Visit, button: Record<string, string>, until?: RegExp): Promise<Visit> {
    const action = (/<form[^>]* action="([^"]*)"/.exec(text)?.[1] ?? '').replaceAll('&amp;', '&');
    const hidden = [...text.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
    const fields = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value]));
    return await this.visit(new URL(action, url), until, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin: url.origin },
      body: new URLSearchParams({ ...fields, ...button }),
    });
  }

  /** The cookies of a host with a port. */
  cookies(host: string): ReadonlyMap<string, string> {
    return this.#jars.get(host) ?? new Map();
  }

  setCookie(host: string, name: string, value: string): void {
    const jar = this.#jars.get(host) ?? new Map<string, string>();
    this.#jars.set(host, jar.set(name, value));
  }
}

export interface Visit {
  readonly url: URL;
  readonly response: Response;
  readonly text: string;
}
