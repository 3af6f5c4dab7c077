import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import getPort from 'get-port';
import { KEYCLOAK, PATH_WITH_SBIN } from '../components.ts';
import { eventually } from '../eventually.ts';

/** The id and the secret of the client that people log in to, in every realm. */
export const KEYCLOAK_CLIENT = { id: 'tagyard', secret: 'login-s3cret' };
/** The audience of access tokens for the API, which the client `dashboard` gets. */
export const KEYCLOAK_AUDIENCE = 'tagyard-api';
/** The password of every account. */
export const PASSWORD = 'correct horse';

const ADMIN = { username: 'admin', password: 'admin' };
/** A start takes less than half a minute on two busy cores. */
const START_MS = 120_000;
const JAVA_OPTS = '-Xms64m -Xmx384m -XX:MaxMetaspaceSize=256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1';

/** Keycloak itself, not a stand-in, with its data in memory. Browsers and the API reach it by a relay. */
export class Keycloak {
  /** Where its clients reach it. */
  readonly url: string;
  /** Where it listens, also while its clients can't reach it. */
  readonly #direct: string;
  readonly #relay: Relay;
  readonly #stop: () => Promise<void>;

  private constructor(direct: string, relay: Relay, stop: () => Promise<void>) {
    this.url = `http://127.0.0.1:${relay.port}`;
    this.#direct = direct;
    this.#relay = relay;
    this.#stop = stop;
  }

  static async start(): Promise<Keycloak> {
    const port = await getPort({ host: '127.0.0.1' });
    const relay = new Relay(port);
    await relay.open();
    const args = ['start', '--optimized', '--http-enabled=true', '--http-host=127.0.0.1', '--cache=local'];
    const names = [`--http-port=${port}`, `--hostname=http://127.0.0.1:${relay.port}`];
    const child = spawn(KEYCLOAK, [...args, ...names], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: PATH_WITH_SBIN,
        JAVA_OPTS,
        KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN.username,
        KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password,
      },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (said: string) => {
        output += said;
      });
    }
    const direct = `http://127.0.0.1:${port}`;
    await eventually(
      async () => {
        if (child.exitCode !== null) throw new Error(`Keycloak ended: ${output.slice(-2_000)}`);
        await (await fetch(`${direct}/realms/master`)).text();
      },
      { timeoutMs: START_MS, intervalMs: 200, until: () => child.exitCode !== null },
    );
    return new Keycloak(direct, relay, async () => {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
      await relay.close();
    });
  }

  /** Imports the realm for a client at `publicUrl`. Returns its issuer. */
  async realm(name: string, publicUrl: string): Promise<string> {
    const text = await readFile(new URL('keycloak-realm.json', import.meta.url), 'utf8');
    const realm = { ...JSON.parse(text.replaceAll('{PUBLIC_URL}', publicUrl)), realm: name };
    await this.admin('POST', '/realms', realm);
    return `${this.url}/realms/${name}`;
  }

  /** A request of the admin's REST API; `path` begins with `/realms`. */
  // biome-ignore lint/suspicious/noExplicitAny: the shape of the answers is Keycloak's
  async admin(method: string, path: string, body?: object): Promise<any> {
    const { access_token: token } = await this.tokens('master', { client_id: 'admin-cli', ...ADMIN });
    const answer = await fetch(`${this.#direct}/admin${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === '' ? null : JSON.parse(text);
  }

  /** The tokens of a login by password (RFC 6749, 4.3), as programs get them. */
  async tokens(realm: string, form: Record<string, string>): Promise<Record<string, string>> {
    const answer = await fetch(`${this.#direct}/realms/${realm}/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'password', scope: 'openid', ...form }),
    });
    if (!answer.ok) throw new Error(`no tokens of ${realm}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, string>;
  }

  /** Runs `work` while clients can't reach Keycloak. */
  async whileAway<T>(work: () => Promise<T>): Promise<T> {
    await this.#relay.close();
    try {
      return await work();
    } finally {
      await this.#relay.open();
    }
  }

  async close(): Promise<void> {
    await this.#stop();
  }
}

/** Forwards connections to a port on loopback. After it was closed it opens on the same port. */
class Relay {
  port = 0;
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((client) => {
    const upstream = connect(this.#target, '127.0.0.1');
    client.pipe(upstream).pipe(client);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  });

  constructor(target: number) {
    this.#target = target;
  }

  async open(): Promise<void> {
    this.#server.listen(this.port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.port = (this.#server.address() as AddressInfo).port; // a TCP server's address is never a string
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
