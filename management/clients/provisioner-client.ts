import { z } from 'zod';
import { coalesce } from '../../base/coalesce.ts';
import { replaceHidden } from '../../base/text.ts';
import { type HostReport, hostReport } from '../../edge/verification/contract.ts';
import { type EdgeAnswer, edgeAnswerSchema } from '../../gitops/report/report.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';

/** Longer than a commit on a slow remote takes. The provisioner applies it in the background. */
const TIMEOUT_MS = 15_000;
/** If a sync isn't answered, the provisioner gets the commit at its next poll. */
const SYNC_MS = 5_000;

/** A text of the provisioner. It may quote a container's log, so it may contain any character. */
const text = z.string().transform((lines) => lines.split('\n').map(replaceHidden).join('\n'));
const accepted = z.object({ operation: z.object({ id: z.string() }).optional() });
const operation = z.object({
  status: z.enum(['queued', 'running', 'succeeded', 'failed']),
  reason: text.optional(),
  fault: z.literal('host').optional().catch(undefined),
  steps: z
    .array(
      z.object({
        target: text,
        key: text,
        error: text.optional(),
        op: z.enum(['create', 'update', 'delete']).optional(),
        status: z.enum(['queued', 'running', 'succeeded', 'failed', 'skipped']).default('queued'),
        startedAt: z.iso.datetime().optional(),
        endedAt: z.iso.datetime().optional(),
      }),
    )
    .default([]),
});
const site = z.object({
  site: z.string(),
  ready: z.boolean(),
  reason: text,
  message: text.default(''),
  refusal: text.optional(),
  heldRemoval: text.optional(),
  partial: z.literal(true).optional(),
  conditions: z.array(z.object({ condition: z.string(), message: text })).default([]),
});
const certificate = z.object({
  target: z.literal('certificate'),
  key: z.string(),
  state: z.string(),
  reason: text,
  issuer: text.nullable(),
  notAfter: z.iso.datetime().nullable(),
});
const certificates = z.object({ resources: z.array(z.unknown()).default([]) });
const quota = z.object({ state: z.string(), message: text, fix: text.nullable() });
/** An older provisioner names no quotas and no authority. */
const sites = z.object({
  sites: z.array(site),
  quotas: z.array(quota).catch([]),
  hasAuthority: z.boolean().catch(false),
});
const problem = z.object({ code: z.string(), detail: text.optional() });

export type ProvisionerOperation = z.output<typeof operation>;
export type ProvisionerSite = z.output<typeof site>;
export type ProvisionerCertificate = z.output<typeof certificate>;

/** What the provisioner reports of its host. */
export interface ProvisionerReport {
  readonly sites: readonly ProvisionerSite[];
  /** Why its zone has no room for another site; `null`: there is room, or that is unknown. */
  readonly full: string | null;
  /** Whether it orders certificates for `tls: acme`. */
  readonly hasAuthority: boolean;
}

/**
 * `unreachable`: no connection was made, so the request did not arrive. `unanswered`: the request may have arrived.
 * `refused`: the provisioner answered with an error `status` and maybe a `code`, or without what was asked for.
 */
export class ProvisionerError extends Error {
  override name = 'ProvisionerError';
  readonly kind: 'unreachable' | 'unanswered' | 'refused';
  readonly status: number | undefined;
  readonly code: string | undefined;

  constructor(
    kind: ProvisionerError['kind'],
    message: string,
    { status, code, ...options }: ErrorOptions & { status?: number; code?: string | undefined } = {},
  ) {
    super(message, options);
    this.kind = kind;
    this.status = status;
    this.code = code;
  }
}

/** The request on whose behalf the provisioner is called. Both logs carry its id. */
export interface CallContext {
  readonly requestId: string;
}

interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly context: CallContext;
  readonly body?: unknown;
  readonly timeoutMs?: number;
}

interface ProvisionerOptions {
  readonly url: string;
  readonly secret: string;
  readonly timeoutMs?: number;
}

/** The part of the provisioner's HTTP interface that management uses (docs/http.md). */
export class ProvisionerClient {
  readonly #options: ProvisionerOptions;

  /** Concurrent calls are one request, because one fetch gets all commits that were made before it. */
  readonly #syncs = coalesce(
    async (contexts: readonly CallContext[]) => {
      const [context] = contexts;
      if (context !== undefined) {
        await this.#call({ method: 'POST', path: '/sync', context, body: {}, timeoutMs: SYNC_MS });
      }
      return contexts.map(() => ({ status: 'fulfilled', value: undefined }) as const);
    },
    { windowMs: 0 },
  );

  constructor(options: ProvisionerOptions) {
    this.#options = options;
  }

  /**
   * Starts a site. If `revision` is `null`, commits its manifest. Else that revision has it, and only secrets that a
   * clone has copied are committed, encrypted for its container: if git has removed the site meanwhile, the call fails
   * as `superseded`. Resolves to the operation’s id.
   */
  async provision(manifest: Manifest, revision: string | null, context: CallContext): Promise<string> {
    const path = revision === null ? '/provision' : `/provision?revision=${revision}`;
    const answer = accepted.parse(await this.#call({ method: 'POST', path, context, body: manifest }));
    if (answer.operation !== undefined) return answer.operation.id;
    throw new ProvisionerError('refused', 'the provisioner named no operation to follow');
  }

  /**
   * Starts the removal of a site that git has removed already. Commits nothing, because git may have brought the
   * site back since. Resolves to the operation to follow, or `null` where nothing is left to do.
   */
  async deprovision(name: string, context: CallContext): Promise<string | null> {
    try {
      const body = { site: name, commit: false };
      const answer = accepted.parse(
        await this.#call({ method: 'POST', path: '/deprovision', context, body }),
      );
      return answer.operation?.id ?? null;
    } catch (error) {
      if (isUnknown(error)) return null;
      throw error;
    }
  }

  /** Makes the provisioner fetch the sites repository now instead of at its next poll. At most one call is open. */
  async sync(context: CallContext): Promise<void> {
    await this.#syncs(context);
  }

  /** Whether it has observed its host at least once since it started. Before that it doesn't know what runs there. */
  async ready(context: CallContext): Promise<boolean> {
    try {
      await this.#call({ method: 'GET', path: '/readyz', context });
      return true;
    } catch (error) {
      if (error instanceof ProvisionerError && error.status === 503) return false;
      throw error;
    }
  }

  /** `null`: it doesn't know the operation, or has dropped it. */
  async operation(
    id: string,
    context: CallContext,
    timeoutMs?: number,
  ): Promise<ProvisionerOperation | null> {
    return await this.#find(operation, `/operations/${encodeURIComponent(id)}`, context, timeoutMs);
  }

  /** `null`: it doesn't know the site. */
  async site(name: string, context: CallContext): Promise<ProvisionerSite | null> {
    return await this.#find(site, `/sites/${encodeURIComponent(name)}`, context);
  }

  /** Whether nothing of a site is left: it says so, or doesn't know the site although it has observed its host. */
  async hasNothingOf(name: string, context: CallContext): Promise<boolean> {
    const known = await this.site(name, context);
    if (known !== null) return known.reason === 'Removed';
    return (await this.ready(context)) && (await this.site(name, context)) === null;
  }

  /** The certificates of a site's names, as its host last saw them. Empty: it doesn't know the site. */
  async certificates(
    name: string,
    context: CallContext,
    timeoutMs: number,
  ): Promise<ProvisionerCertificate[]> {
    const path = `/sites/${encodeURIComponent(name)}`;
    try {
      const shown = certificates.parse(await this.#call({ method: 'GET', path, context, timeoutMs }));
      return shown.resources.flatMap((one) => certificate.safeParse(one).data ?? []);
    } catch (error) {
      if (isUnknown(error)) return [];
      throw error;
    }
  }

  /** What only its host can observe of a site; `null`: it doesn't know the site. */
  async hostReport(name: string, context: CallContext, timeoutMs: number): Promise<HostReport | null> {
    const path = `/sites/${encodeURIComponent(name)}/host-report`;
    try {
      const report = hostReport.safeParse(await this.#call({ method: 'GET', path, context, timeoutMs }));
      if (report.success) return report.data;
      throw new ProvisionerError(
        'refused',
        'the provisioner’s answer is not a host report: update management and provisioner together',
      );
    } catch (error) {
      if (isUnknown(error)) return null;
      throw error;
    }
  }

  /** Whether the edge answers for a site as its newest manifest asks; `null`: the host doesn't know the site. */
  async edgeAnswer(name: string, context: CallContext): Promise<EdgeAnswer | null> {
    return await this.#find(edgeAnswerSchema, `/sites/${encodeURIComponent(name)}/edge`, context);
  }

  /** All sites that it knows, whether another one fits, and whether it orders certificates. */
  async report(context: CallContext): Promise<ProvisionerReport> {
    const answer = sites.parse(await this.#call({ method: 'GET', path: '/sites', context }));
    const full = answer.quotas.find(({ state }) => state === 'quota_reached');
    return {
      sites: answer.sites,
      hasAuthority: answer.hasAuthority,
      full: full === undefined ? null : [full.message, full.fix ?? ''].join('. '),
    };
  }

  /** Any answer of the provisioner, as the schema says. */
  async ask<Schema extends z.ZodType>(
    schema: Schema,
    call: Pick<Call, 'method' | 'path' | 'context' | 'body' | 'timeoutMs'>,
  ): Promise<z.output<Schema>> {
    return schema.parse(await this.#call(call));
  }

  async #find<Schema extends z.ZodType>(
    schema: Schema,
    path: string,
    context: CallContext,
    timeoutMs?: number,
  ): Promise<z.output<Schema> | null> {
    try {
      return schema.parse(
        await this.#call({ method: 'GET', path, context, ...(timeoutMs && { timeoutMs }) }),
      );
    } catch (error) {
      if (isUnknown(error)) return null;
      throw error;
    }
  }

  async #call({ method, path, context, body, timeoutMs }: Call): Promise<unknown> {
    const { url, secret } = this.#options;
    let response: Response;
    try {
      response = await fetch(new URL(path, url), {
        method,
        headers: {
          'x-secret': secret,
          'x-request-id': context.requestId,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: body === undefined ? null : JSON.stringify(body),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS),
      });
    } catch (cause) {
      const kind = wasNeverConnected(cause) ? 'unreachable' : 'unanswered';
      throw new ProvisionerError(kind, `the provisioner didn't answer ${method} ${path}`, { cause });
    }
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return answer;
    const { code, detail } = problem.safeParse(answer).data ?? {};
    throw new ProvisionerError(
      'refused',
      `the provisioner answered ${response.status} to ${method} ${path}${code ? ` (${code})` : ''}${detail ? `: ${detail}` : ''}`,
      { status: response.status, code },
    );
  }
}

function isUnknown(error: unknown): boolean {
  return error instanceof ProvisionerError && error.status === 404;
}

const NEVER_CONNECTED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];

/** The cause of fetch's error is the socket's error; if several addresses failed, an AggregateError with a code. */
function wasNeverConnected(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return (
    cause instanceof Error &&
    'code' in cause &&
    (NEVER_CONNECTED.includes(String(cause.code)) || cause.code === 'UND_ERR_CONNECT_TIMEOUT')
  );
}
