import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { VerificationClient } from '../../edge/verification/client.ts';
import { eventually } from '../support/eventually.ts';
import { VERIFIER_SECRET, VerifierFixture } from '../support/management/verifier.ts';
import { creation, World } from '../support/management/world.ts';

let verifier: VerifierFixture;
let world: World;
let client: string;
let number = 0;
beforeAll(async () => {
  verifier = new VerifierFixture();
  await verifier.start();
  world = await World.open({
    verifier: new VerificationClient({ url: verifier.url, secret: VERIFIER_SECRET }),
  });
  client = await world.client();
});
afterAll(async () => {
  await world?.close();
  await verifier?.stop();
});
beforeEach(() => {
  verifier.passes();
  verifier.instead = null;
  verifier.requests.length = 0;
});

/** A container that is active. */
async function container(extra: object = {}): Promise<string> {
  number += 1;
  const body = creation(client, `shop${number}.example`, extra);
  const { body: made } = await world.call('POST', '/server-containers', { as: 'owner', body });
  await eventually(async () => expect(await read(made.id)).toMatchObject({ status: 'active' }));
  return made.id;
}
const read = async (id: string) =>
  (await world.call('GET', `/server-containers/${id}`, { as: 'viewer' })).body;
const verify = (id: string, as = 'owner') => world.call('POST', `/server-containers/${id}/verify`, { as });
const kept = async (id: string) =>
  (await world.call('GET', `/server-containers/${id}/verifications`, { as: 'viewer' })).body.verifications;
const events = async (id: string) =>
  (await world.call('GET', `/server-containers/${id}/events`, { as: 'viewer' })).body.events;

describe('a verification', () => {
  test('moves the status to verified → verification_failed → verified, with actor and reason', async () => {
    const id = await container();
    const first = await verify(id, 'admin');
    expect(first).toMatchObject({
      status: 200,
      body: {
        container: { id, status: 'verified', statusReason: null },
        verification: { status: 'passed', checks: [{ name: 'loader', status: 'passed', fix: null }] },
      },
    });
    verifier.fails(
      { name: 'dns', subject: 'metrics.acme.example' },
      { name: 'single_preview', subject: null },
    );
    expect((await verify(id)).body.container).toMatchObject({
      status: 'verification_failed',
      statusReason: 'checks_failed',
      statusDetail: 'dns (metrics.acme.example), single_preview',
    });
    verifier.passes();
    expect((await verify(id)).body.container).toMatchObject({ status: 'verified', statusDetail: null });
    const moves = (await events(id)).filter(({ kind }: { kind: string }) => kind === 'status');
    expect(
      moves.slice(-3).map(({ status, actor, reason }: Record<string, unknown>) => [status, actor, reason]),
    ).toEqual([
      ['verified', 'admin', null],
      ['verification_failed', 'owner', 'checks_failed'],
      ['verified', 'owner', null],
    ]);
  });

  test('with the same verdict changes no status, but its result and detail are recorded', async () => {
    const id = await container();
    verifier.fails({ name: 'dns', subject: 'a.example' });
    await verify(id);
    const moves = async () => (await events(id)).filter(({ kind }: { kind: string }) => kind === 'status');
    const before = await moves();
    verifier.fails({ name: 'certificate', subject: 'a.example' });
    expect((await verify(id)).body.container).toMatchObject({
      status: 'verification_failed',
      statusDetail: 'certificate (a.example)',
    });
    expect(await moves()).toEqual(before);
    expect((await kept(id)).map(({ checks }: { checks: { name: string }[] }) => checks[0]?.name)).toEqual([
      'certificate',
      'dns',
    ]);
  });

  test('of a site without any answer fails with a detail of its own', async () => {
    const id = await container();
    verifier.status = 'unreachable';
    expect((await verify(id)).body).toMatchObject({
      container: { status: 'verification_failed', statusDetail: 'the site gave no answer, or only 5xx' },
      verification: { status: 'unreachable' },
    });
  });

  test('sends the worker the site as git has it, and why there is no host report', async () => {
    const id = await container({ features: { multi_domain: false } });
    const { hostnames, loaderToken, domains } = await read(id);
    await verify(id);
    expect(verifier.requests).toMatchObject([
      {
        site: {
          edge: `https://${hostnames.edge}`,
          origin: `https://${hostnames.origin}`,
          preview: `https://${hostnames.preview}`,
          loaderToken,
          domains: [{ domain: domains[0].domain, token: domains[0].containerToken, active: true }],
        },
        host: null,
        hostProblem: 'it doesn’t know the site',
      },
    ]);
    expect(verifier.requests[0]?.budget).toBeLessThanOrEqual(10_000);
  });

  test('sends the worker the host’s report', async () => {
    const id = await container();
    const { siteId, hostnames, loaderToken } = await read(id);
    const site = {
      siteId,
      edge: `https://${hostnames.edge}`,
      origin: `https://${hostnames.origin}:8443`,
      preview: `https://${hostnames.preview}:8443`,
      customDomains: [],
      loaderToken,
      domains: [],
      proxyPaths: [],
    };
    const report = {
      host: 'tag-1',
      site,
      config: { id: 'GTM-SRV12345', problem: null },
      previews: { count: 1, problem: null },
      names: [],
      certificates: [],
      arrivals: [],
    };
    world.provisioner.hostReport = report;
    try {
      await verify(id);
      // The ports are those that the host reports.
      expect(verifier.requests).toMatchObject([{ site, host: report, hostProblem: null }]);
    } finally {
      world.provisioner.hostReport = null;
    }
  });

  test('continues without the report of a host that doesn’t answer, in the remaining time', async () => {
    const id = await container();
    world.provisioner.hostReport = 'silence';
    try {
      expect(await verify(id)).toMatchObject({ status: 200 });
      expect(verifier.requests).toMatchObject([
        { host: null, hostProblem: expect.stringContaining("the provisioner didn't answer") },
      ]);
      expect(verifier.requests[0]?.budget).toBeLessThan(5_100);
    } finally {
      world.provisioner.hostReport = null;
    }
  });

  test('keeps the last ten results', async () => {
    const id = await container();
    for (let run = 0; run < 12; run += 1) {
      verifier.fails({ name: 'dns', subject: `run${run}.example` });
      await verify(id);
    }
    const subjects = (await kept(id)).map(
      ({ checks }: { checks: { subject: string }[] }) => checks[0]?.subject,
    );
    expect(subjects).toEqual(Array.from({ length: 10 }, (_, index) => `run${11 - index}.example`));
    expect(await countRows(id)).toBe(10);
  });

  test('that is requested while one runs gets the result of that one', async () => {
    const id = await container();
    const held = Promise.withResolvers<void>();
    verifier.gate = held.promise;
    const both = Promise.all([verify(id), verify(id, 'admin')]);
    await eventually(() => expect(verifier.requests).toHaveLength(1));
    held.resolve();
    const [one, two] = await both;
    expect(one.body.verification).toEqual(two.body.verification);
    expect(verifier.requests).toHaveLength(1);
    expect(await kept(id)).toHaveLength(1);
  });

  test('doesn’t change the status of a container whose removal has begun meanwhile', async () => {
    const id = await container();
    const held = Promise.withResolvers<void>();
    verifier.gate = held.promise;
    const under = verify(id);
    await eventually(() => expect(verifier.requests).toHaveLength(1));
    await world.call('DELETE', `/server-containers/${id}`, { as: 'owner' });
    held.resolve();
    verifier.gate = Promise.resolve();
    expect((await under).body.verification).toMatchObject({ status: 'passed' });
    await eventually(async () => expect(await read(id)).toMatchObject({ status: 'removed' }));
    expect(await kept(id)).toHaveLength(1);
  });

  test('is refused for a container that is gone', async () => {
    const id = await container();
    await world.call('DELETE', `/server-containers/${id}`, { as: 'owner' });
    await eventually(async () => expect(await read(id)).toMatchObject({ status: 'removed' }));
    expect(await verify(id)).toMatchObject({ status: 409, body: { code: 'wrong_status' } });
    expect(verifier.requests).toEqual([]);
  });

  test('needs a role that may act: a viewer may only read results, a stranger sees nothing', async () => {
    const id = await container();
    expect(await verify(id, 'viewer')).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    expect(await verify(id, 'stranger')).toMatchObject({ status: 404, body: { code: 'unknown_container' } });
    const path = `/server-containers/${id}/verifications`;
    expect(await world.call('GET', path, { as: 'stranger' })).toMatchObject({ status: 404 });
    expect(await kept(id)).toEqual([]);
    expect(verifier.requests).toEqual([]);
  });
});

describe('without a verdict of the worker', () => {
  const unavailable = { status: 502, body: { code: 'verification_unavailable' } };

  test.each<[what: string, instead: { status: number; body: object }]>([
    ['a worker that errs', { status: 500, body: {} }],
    ['a worker with another secret', { status: 401, body: { code: 'wrong_secret' } }],
    ['an answer that is no report', { status: 200, body: { status: 'fine' } }],
  ])('the status is unchanged, and no result is recorded: %s', async (_what, instead) => {
    const id = await container();
    await verify(id);
    verifier.instead = instead;
    expect(await verify(id)).toMatchObject(unavailable);
    expect(await read(id)).toMatchObject({ status: 'verified' });
    expect(await kept(id)).toHaveLength(1);
    // The next request starts a new verification.
    verifier.instead = null;
    expect(await verify(id)).toMatchObject({ status: 200 });
  });

  test('the status is unchanged, too, where the worker is unreachable or there is none', async () => {
    const id = await container();
    await verifier.stop();
    expect(await verify(id)).toMatchObject(unavailable);
    const none = await World.open();
    const other = await none.client();
    const { body } = await none.call('POST', '/server-containers', { as: 'owner', body: creation(other) });
    await eventually(async () => {
      const answer = await none.call('POST', `/server-containers/${body.id}/verify`, { as: 'owner' });
      expect(answer).toMatchObject({
        ...unavailable,
        body: { detail: 'VERIFICATION_WORKER_URL is not set' },
      });
    });
    await none.close();
  });
});

test('the OpenAPI document allows a verification’s report, and no unknown status or check', async () => {
  const { body: document } = await world.call('GET', '/openapi.json');
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'https://document.test/', ...document });
  const validate = ajv.getSchema('https://document.test/#/components/schemas/Verification');
  const report = {
    status: 'failed',
    checkedAt: new Date().toISOString(),
    checks: [{ name: 'dns', subject: 'a.example', status: 'failed', detail: 'x', fix: 'y' }],
  };
  expect(validate?.(report)).toBe(true);
  expect(validate?.({ ...report, status: 'odd' })).toBe(false);
  expect(validate?.({ ...report, checks: [{ ...report.checks[0], name: 'odd' }] })).toBe(false);
});

async function countRows(id: string): Promise<number> {
  const rows = await world.owner
    .selectFrom('verifications')
    .select('seq')
    .where('container_id', '=', id)
    .execute();
  return rows.length;
}
