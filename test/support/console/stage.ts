import getPort from 'get-port';
import type { BrowserContext, Page } from 'playwright-core';
import { expect } from 'vitest';
import { VerificationClient } from '../../../edge/verification/client.ts';
import { eventually } from '../eventually.ts';
import { LOGIN_CLIENT_ID, LoginProvider } from '../login/provider.ts';
import { batchOf } from '../management/raw-logs.ts';
import { VERIFIER_SECRET, VerifierFixture } from '../management/verifier.ts';
import { creation, World, type WorldOptions } from '../management/world.ts';

const SECRET = 'login-s3cret';
const INGEST_SECRET = 'ingest-s3cret-of-the-console';

/** A management API with the console, its OpenID provider and a verification worker. */
export class ConsoleStage {
  readonly world: World;
  readonly url: string;
  readonly verifier: VerifierFixture;
  readonly #provider: LoginProvider;

  private constructor(
    world: World,
    url: string,
    parts: { provider: LoginProvider; verifier: VerifierFixture },
  ) {
    this.world = world;
    this.url = url;
    this.verifier = parts.verifier;
    this.#provider = parts.provider;
  }

  static async open(options: WorldOptions = {}): Promise<ConsoleStage> {
    const port = await getPort({ host: '127.0.0.1' });
    const url = `http://127.0.0.1:${port}`;
    const provider = await LoginProvider.start(url, SECRET);
    const verifier = new VerifierFixture();
    await verifier.start();
    const hints = ['owner', 'viewer', 'root'].map((hint) => ({
      hint,
      name: `The ${hint}`,
      description: `logs in as ${hint}`,
    }));
    const world = await World.open({
      logLevel: 'warn',
      ...options,
      verifier: new VerificationClient({ url: verifier.url, secret: VERIFIER_SECRET }),
      settings: {
        ingestSecret: INGEST_SECRET,
        login: {
          issuer: provider.url,
          clientId: LOGIN_CLIENT_ID,
          subjectClaim: 'sub',
          clientSecret: SECRET,
          publicUrl: url,
          hints,
          idleSeconds: 1_800,
          absoluteSeconds: 28_800,
        },
        ...options.settings,
      },
    });
    await world.management?.app.listen({ host: '127.0.0.1', port });
    return new ConsoleStage(world, url, { provider, verifier });
  }

  /** An active container of the client, with a domain of its own. */
  async container(client: string, domain: string, extra: object = {}): Promise<string> {
    const { world } = this;
    const { body } = await world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(client, domain, extra),
    });
    await eventually(async () => {
      const { body: now } = await world.call('GET', `/server-containers/${body.id}`, { as: 'owner' });
      expect(now.status).toBe('active');
    });
    return body.id;
  }

  /** Reports requests live, as the edge does. The sums of traffic don't contain them. */
  async report(records: readonly object[]): Promise<void> {
    const body = batchOf(records)
      .map((record) => JSON.stringify(record))
      .join('\n');
    const headers = { authorization: `Bearer ${INGEST_SECRET}`, 'content-type': 'application/x-ndjson' };
    const { status } = await fetch(`${this.url}/ingest`, { method: 'POST', body, headers });
    expect(status).toBe(202);
  }

  async close(): Promise<void> {
    await this.world.close();
    await this.verifier.stop();
    await this.#provider.stop();
  }

  /** A page of a new visitor who has logged in with one click. Complaints of the browser are collected. */
  async logIn(visitor: BrowserContext, subject: string, path = '/console'): Promise<ConsolePage> {
    const page = await visitor.newPage();
    const complaints: string[] = [];
    page.on('pageerror', ({ message }) => complaints.push(message));
    page.on('console', (message) => {
      // Chromium also reports answers like 404 and 412 as errors of the network.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
        complaints.push(message.text());
      }
    });
    await page.goto(`${this.url}${path}`);
    await page.getByRole('button', { name: `The ${subject}` }).click();
    await page.getByText('Log out').waitFor({ state: 'attached' });
    return { page, complaints };
  }
}

interface ConsolePage {
  readonly page: Page;
  /** Errors and violations of the security policy. */
  readonly complaints: string[];
}
