import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { sitesAnswerSchema } from '../../../gitops/report/report.ts';
import { EMULATOR_SCRIPT, EMULATOR_TOKEN, EMULATOR_ZONE, type TestEmulator } from '../cloudflare/emulator.ts';

interface ProvisionerOptions {
  /** For its state, and for files that it reads. */
  readonly folder: string;
  readonly sitesRepo: string;
  readonly ageIdentity: string;
  readonly secret: string;
  readonly emulator: TestEmulator;
  /** What this kind of host needs. */
  readonly env: NodeJS.ProcessEnv;
}

/** The provisioner as a process of its own, as operators start it. It ends with this process. */
export class ProvisionerProcess implements AsyncDisposable {
  readonly url: string;
  /** Resolves to its exit code and what it has written to stderr. */
  readonly exited: Promise<{ readonly code: number | null; readonly errors: string }>;
  readonly #child: ChildProcess;
  readonly #secret: string;

  private constructor(
    child: ChildProcess,
    url: string,
    { secret, exited }: Pick<ProvisionerProcess, 'exited'> & { readonly secret: string },
  ) {
    this.#child = child;
    this.url = url;
    this.exited = exited;
    this.#secret = secret;
  }

  /** Resolves when it answers. Rejects with what it has written to stderr if it ends before. */
  static async start(options: ProvisionerOptions): Promise<ProvisionerProcess> {
    const { folder, sitesRepo, ageIdentity, secret, emulator } = options;
    const identityFile = join(folder, 'age-identity');
    await writeFile(identityFile, `${ageIdentity}\n`, { mode: 0o600 });
    const child = fork(new URL('../../../gitops/main.ts', import.meta.url), {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        LOG_LEVEL: 'warn',
        SITES_REPO: sitesRepo,
        SITES_POLL_SECONDS: '0.2',
        STATE_DIR: join(folder, 'state'),
        AGE_IDENTITY_FILE: identityFile,
        INFRA_SECRET: secret,
        HOP_SECRET: 'a-hop-secret-of-a-test',
        PROVISIONER_PORT: '0',
        DRAIN_SECONDS: '0',
        CLOUDFLARE_API_URL: emulator.url,
        CLOUDFLARE_API_TOKEN: EMULATOR_TOKEN,
        CLOUDFLARE_ACCOUNT_ID: emulator.account,
        CLOUDFLARE_ZONE_ID: emulator.zone.id,
        CLOUDFLARE_RATE: '1000',
        EDGE_DOMAIN: EMULATOR_ZONE,
        EDGE_SCRIPT_NAME: EMULATOR_SCRIPT,
        ...options.env,
      },
    });
    let errors = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    const exited = once(child, 'exit').then(([code]) => ({ code, errors }));
    const [message] = await Promise.race([
      once(child, 'message'),
      exited.then(() => Promise.reject(new Error(`the provisioner ended: ${errors}`))),
    ]);
    return new ProvisionerProcess(child, String(message.url), { secret, exited });
  }

  /** What it answers to a request with the secret. */
  async call(method: 'GET' | 'POST', path: string, secret = this.#secret): Promise<Response> {
    return await fetch(`${this.url}${path}`, { method, headers: { 'x-secret': secret } });
  }

  /** Stops the process until `thaw`. The process itself can't notice this. */
  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** Lets it end in order. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.exited;
  }

  /** The statuses of all sites. */
  async sites(): Promise<z.output<typeof sitesAnswerSchema>> {
    const answer = await this.call('GET', '/sites');
    return sitesAnswerSchema.parse(await answer.json());
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
