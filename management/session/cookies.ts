import type { FastifyReply, FastifyRequest } from 'fastify';

/** The names and attributes of the session's cookies at one public URL. */
export class SessionCookies {
  readonly #isSecure: boolean;

  /** `publicUrl`: `https`, or `http` on loopback, where browsers refuse cookies with the prefix `__Host-`. */
  constructor(publicUrl: string) {
    this.#isSecure = publicUrl.startsWith('https:');
  }

  read({ headers }: FastifyRequest, name: string): string | null {
    const wanted = this.#nameOf(name);
    const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim());
    const value = pairs.find((pair) => pair.startsWith(`${wanted}=`))?.slice(wanted.length + 1);
    return value !== undefined && /^[\w.-]{1,2048}$/.test(value) ? value : null;
  }

  set(reply: FastifyReply, name: string, { value, seconds }: { value: string; seconds: number }): void {
    const secure = this.#isSecure ? '; Secure' : '';
    // Lax, not Strict: with Strict, requests from links in a mail and the provider's redirect would arrive without the
    // session.
    const attributes = `Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`;
    reply.header('set-cookie', `${this.#nameOf(name)}=${value}; ${attributes}`);
  }

  clear(reply: FastifyReply, name: string): void {
    this.set(reply, name, { value: '', seconds: 0 });
  }

  #nameOf(name: string): string {
    return this.#isSecure ? `__Host-tagyard-${name}` : `tagyard-${name}`;
  }
}
