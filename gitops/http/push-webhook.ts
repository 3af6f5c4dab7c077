import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { FastifyPluginAsync } from 'fastify';
import { z } from 'zod';
import { equalSecrets } from '../../base/http/equal-secrets.ts';
import type { DaemonDeps } from './deps.ts';
import { ProvisionerProblem } from './errors.ts';

export const PUSH_WEBHOOK = '/webhooks/push';
/** A push of 500 commits is reported in less than 1 MB. A larger one is found by the next poll. */
const BODY_LIMIT = 2 * 1024 * 1024;

const push = z.looseObject({ ref: z.string() });

/**
 * `POST /webhooks/push`: GitHub, Gitea and GitLab report pushes, and one of the branch starts a pass, which fetches. It
 * has no `x-secret`: the forge signs the body, or sends the webhook's secret.
 */
export function pushWebhookRoute({ loop, pushWebhook }: DaemonDeps): FastifyPluginAsync {
  return async (app) => {
    if (pushWebhook === undefined) return;
    app.removeAllContentTypeParsers();
    // The signature is that of the bytes.
    app.addContentTypeParser(
      ['application/json', 'application/x-www-form-urlencoded'],
      { parseAs: 'buffer' },
      (_request, body, done) => done(null, body),
    );
    app.post<{ Body: Buffer | undefined }>(
      PUSH_WEBHOOK,
      { bodyLimit: BODY_LIMIT },
      async ({ headers, body = Buffer.alloc(0) }, reply) => {
        // Read for each request, so that a new secret counts at once.
        const secrets = (await readFile(pushWebhook.secretFile, 'utf8')).split(/\s+/).filter(Boolean);
        if (!secrets.some((secret) => isSigned(headers, body, secret))) {
          throw new ProvisionerProblem('wrong_signature');
        }
        const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true;
        const text = isForm ? new URLSearchParams(body.toString()).get('payload') : body.toString();
        const isOurs = refIn(text ?? '') === `refs/heads/${pushWebhook.branch}`;
        if (isOurs) loop.trigger();
        return reply.status(202).send({ fetches: isOurs });
      },
    );
  };
}

/** Source: the forges' documents on validating deliveries. GitLab sends the secret itself. */
function isSigned(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: Buffer,
  secret: string,
): boolean {
  const digest = createHmac('sha256', secret).update(body).digest('hex');
  const accepted = {
    'x-hub-signature-256': `sha256=${digest}`,
    'x-gitea-signature': digest,
    'x-gitlab-token': secret,
  };
  return Object.entries(accepted).some(([name, value]) => {
    const given = headers[name];
    return typeof given === 'string' && equalSecrets(given, value);
  });
}

/** The ref that a push has moved; `null`: the message reports something else, for example a webhook's creation. */
function refIn(text: string): string | null {
  try {
    return push.safeParse(JSON.parse(text)).data?.ref ?? null;
  } catch {
    return null;
  }
}
