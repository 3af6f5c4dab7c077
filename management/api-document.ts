import { hash } from 'node:crypto';
import { z } from 'zod';
import { SitesRepo } from '../sites/repo/sites-repo.ts';
import { renderRoles } from './access/routes.ts';
import { buildManagement, type Management } from './app.ts';
import { ProvisionerClient } from './clients/provisioner-client.ts';
import { Resolvers } from './clients/resolvers.ts';
import { connectEmbedded } from './db/connect.ts';

/** An app without services, which answers no request. */
async function buildIdle(): Promise<Management> {
  return await buildManagement({
    db: connectEmbedded(),
    repo: new SitesRepo('.', null),
    provisioner: new ProvisionerClient({ url: 'http://127.0.0.1', secret: '' }),
    resolvers: new Resolvers([]),
    verifier: null,
    rawObjects: null,
    authenticate: () => Promise.reject(new Error('this app answers no request')),
    settings: {
      host: '',
      image: '',
      imageRepositories: [],
      edgeDomain: '',
      originDomain: '',
      defaultConsent: 'opt_out',
      defaultTls: null,
      platformDomains: [],
      edgePublicUrl: '',
      customPublicUrl: '',
      vendorUrl: '',
      ageRecipient: '',
      forwarderKey: null,
      superAdmins: [],
      domainProof: 'off',
      followMs: 0,
      watchMs: 0,
      answerMs: 0,
      limits: { perAddress: 1, perSubject: 1, streamsPerSubject: 1 },
      quotas: { containers: null, members: 1, tokens: 1, clientsPerOrganisation: 1, clientsPerPerson: 1 },
      allowLoopback: false,
      trustedProxies: [],
      metricsToken: null,
      ingestSecret: null,
      searchCache: null,
      login: null,
      publicUrl: null,
      mail: null,
      dashboardOrigins: [],
      traffic: {
        pollMs: 0,
        lateDays: 1,
        minuteHours: 0,
        hourDays: 0,
        dayDays: 0,
        softLimits: { requests: null, events: null },
      },
      retentionDays: { audit: 0, events: 0, operations: 0 },
    },
    logger: { level: 'silent' },
  });
}

/** docs/roles.md, of the routes that exist. */
export async function rolesDocument(): Promise<string> {
  const { app, routes } = await buildIdle();
  await app.close();
  return renderRoles(routes);
}

/** The OpenAPI document as `/openapi.json` serves it. */
export async function apiDocument(): Promise<object> {
  const { app } = await buildIdle();
  const document = app.swagger();
  await app.close();
  return document;
}

/** First line of the types generated from a document. It shows whether the file is stale or was edited. */
export function stampOf(document: object, types: string): string {
  const digest = (text: string) => hash('sha256', text, 'hex').slice(0, 16);
  return `// npm run generate:api (document ${digest(JSON.stringify(document))}, types ${digest(types)})\n`;
}

/** The part of the document in which `keyedOperations` finds each operation's parameters. */
const described = z.object({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({ parameters: z.array(z.object({ in: z.string(), name: z.string() })).default([]) }),
    ),
  ),
});

/**
 * The source text of the list of operations that take an idempotency key. It shows a client which requests it may
 * repeat.
 */
export function keyedOperations(document: object): string {
  const { paths } = described.parse(document);
  const keyed = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { parameters }]) =>
        parameters.some((one) => one.in === 'header' && one.name === 'idempotency-key'),
      )
      .map(([method]) => `  '${method.toUpperCase()} ${path}',\n`),
  );
  return `// npm run generate:api\nexport const KEYED_OPERATIONS = [\n${keyed.sort().join('')}] as const;\n`;
}
