import { hash } from 'node:crypto';
import { SitesRepo } from '../gitops/sites-repo/sites-repo.ts';
import { buildManagement } from './app.ts';
import { ProvisionerClient } from './clients/provisioner-client.ts';
import { connectEmbedded } from './db/connect.ts';

/** The OpenAPI document as `/openapi.json` serves it, from an app without services that answers no request. */
export async function apiDocument(): Promise<object> {
  const { app } = await buildManagement({
    db: connectEmbedded(),
    repo: new SitesRepo('.', null),
    provisioner: new ProvisionerClient({ url: 'http://127.0.0.1', secret: '' }),
    verifier: null,
    authenticate: () => Promise.reject(new Error('this app answers no request')),
    settings: {
      host: '',
      image: '',
      imageRepositories: [],
      edgeDomain: '',
      originDomain: '',
      defaultConsent: 'opt_out',
      platformDomains: [],
      edgePublicUrl: '',
      customPublicUrl: '',
      vendorUrl: '',
      ageRecipient: '',
      forwarderKey: null,
      superAdmins: [],
      followMs: 0,
      watchMs: 0,
      answerMs: 0,
      limits: { perAddress: 1, perSubject: 1, streamsPerSubject: 1 },
      trustedProxies: [],
      metricsToken: null,
      retentionDays: { audit: 0, events: 0, operations: 0 },
    },
    logger: { level: 'silent' },
  });
  const document = app.swagger();
  await app.close();
  return document;
}

/** First line of the types generated from a document. It shows whether the file is stale or was edited. */
export function stampOf(document: object, types: string): string {
  const digest = (text: string) => hash('sha256', text, 'hex').slice(0, 16);
  return `// npm run generate:api (document ${digest(JSON.stringify(document))}, types ${digest(types)})\n`;
}
