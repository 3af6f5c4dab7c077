import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { identityToRecipient } from 'age-encryption';
import pg from 'pg';
import { AUDIENCE, ISSUER } from './issuer.ts';
import type { DatabaseUrls } from './postgresql.ts';
import { VERIFIER_SECRET } from './verifier.ts';
import { type Answer, SECRET, type World } from './world.ts';

interface Child {
  readonly process: ChildProcess;
  /** Empty until it is ready. */
  url: string;
}

/** Several processes of the API on the database, repository and provisioner of a world whose own API is stopped. */
export class ManagementProcesses {
  readonly #children: Child[] = [];
  readonly #world: World;
  readonly #database: DatabaseUrls;

  private constructor(world: World, database: DatabaseUrls) {
    this.#world = world;
    this.#database = database;
  }

  static async start(
    count: number,
    { world, urls, verifier = 'http://127.0.0.1:9' }: { world: World; urls: DatabaseUrls; verifier?: string },
  ): Promise<ManagementProcesses> {
    const processes = new ManagementProcesses(world, urls);
    const recipient = await identityToRecipient(world.identity);
    await Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const env = {
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
          MANAGEMENT_PORT: '0',
          LOG_LEVEL: 'silent',
          DATABASE_URL: urls.api,
          PORT_POOL_DATABASE_URL: urls.owner,
          STATE_DIR: join(world.dir, `state-${index}`),
          SITES_REPO: world.bare,
          INFRA_PROVISIONER_URL: world.provisioner.url,
          INFRA_SECRET: SECRET,
          VERIFICATION_WORKER_URL: verifier,
          VERIFICATION_SECRET: VERIFIER_SECRET,
          FORWARDER_KEY: 'forwarder-key-of-the-tests-0123456789',
          AUTH_JWKS_URL: world.issuer.jwksUrl,
          AUTH_ISSUER: ISSUER,
          AUTH_AUDIENCE: AUDIENCE,
          AGE_RECIPIENT: recipient,
          EDGE_DOMAIN: 'edge.example.net',
          ORIGIN_DOMAIN: 'origin.example.net',
          TAG_SERVER_IMAGE: world.settings.image,
          SUPER_ADMINS: 'root',
          ALLOW_LOOPBACK_TARGETS: 'true',
          RATE_LIMIT_PER_ADDRESS: '1000000',
          RATE_LIMIT_PER_SUBJECT: '1000000',
        };
        const main = new URL('../../../management/main.ts', import.meta.url);
        // Kept in the order of their starts: they become ready in any order.
        const child = { process: fork(main, { env, stdio: 'inherit' }), url: '' };
        processes.#children.push(child);
        const [message] = await once(child.process, 'message');
        child.url = String(message.url);
      }),
    );
    return processes;
  }

  /** Sends a request to the process with the number `at` modulo their count. */
  async call(
    at: number,
    method: string,
    path: string,
    call: { as: string; body?: unknown },
  ): Promise<Answer> {
    const { as, body } = call;
    const answer = await fetch(`${this.#children[at % this.#children.length]?.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await this.#world.issuer.token(as)}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, headers: {}, body: text === '' ? null : JSON.parse(text) };
  }

  /** Address and process id of each process. */
  all(): { readonly url: string; readonly pid: number }[] {
    return this.#children.map(({ process: { pid = 0 }, url }) => ({ url, pid }));
  }

  /** Kills all processes. */
  async kill(): Promise<void> {
    await Promise.all(
      this.#children.map(async ({ process: child }) => {
        const exited = once(child, 'exit');
        child.kill('SIGKILL');
        await exited;
      }),
    );
  }

  /** Ends all processes. Resolves to the number of PostgreSQL's deadlocks, which are counted when a session ends. */
  async stop(): Promise<number> {
    await Promise.all(
      this.#children.map(async ({ process: child }) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, 'exit');
        child.kill('SIGTERM');
        await exited;
      }),
    );
    const client = new pg.Client({ connectionString: this.#database.owner });
    await client.connect();
    const { rows } = await client.query(
      'select deadlocks::integer from pg_stat_database where datname = current_database()',
    );
    await client.end();
    return rows[0].deadlocks;
  }
}

interface Target {
  readonly id: string;
  readonly domain: string;
}

/** Mutations of a container that may run concurrently, by name. Each is repeated with another `round`. */
export const MUTATIONS: Readonly<
  Record<string, (target: Target, round: number) => [method: string, path: string, body?: object]>
> = {
  change: (_target, round) => ['PATCH', '', { name: `Round ${round}` }],
  verify: () => ['POST', '/verify'],
  'add a domain': ({ domain }) => ['POST', '/domains', { domain: `more.${domain}`, webTagId: 'GTM-ABC1234' }],
  'remove a domain': ({ domain }) => ['DELETE', `/domains?domain=more.${domain}`],
  'add a custom domain': ({ domain }) => ['POST', '/custom-domains', { domain: `m.${domain}` }],
  'remove a custom domain': ({ domain }) => ['DELETE', `/custom-domains?domain=m.${domain}`],
  'rotate the token': () => ['POST', '/loader-token', {}],
  'set a same-origin path': ({ domain }, round) => [
    'POST',
    '/domains',
    { domain, sameOrigin: { path: `/path00${round % 10}` } },
  ],
};
