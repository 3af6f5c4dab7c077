import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Check, VerificationReport } from '../../edge/verification/contract.ts';
import { api } from '../helpers/api.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Instance, startInstance, temporaryHome } from '../helpers/instance.ts';

const faulty = ({ checks }: VerificationReport) =>
  checks.filter(({ status }) => status === 'failed').map(({ name }) => name);
const find = ({ checks }: VerificationReport, name: Check['name'], subject?: string) =>
  checks.find((check) => check.name === name && (subject === undefined || check.subject === subject));

describe('a verification on a running instance', () => {
  const home = temporaryHome();
  let instance: Instance;
  let call: ReturnType<typeof api>;
  let id: string;

  beforeAll(async () => {
    instance = await startInstance(home.path, { TAGYARD_CONTAINERS: 'process' });
    call = api(instance.run);
    id = instance.run.demo.container;
    await call.reaches(id, 'active');
  });
  afterAll(async () => {
    await instance?.stop();
    home[Symbol.dispose]();
  });

  async function verify() {
    const { status, body } = await call.management('POST', `/server-containers/${id}/verify`);
    return { status, body, report: body.verification as VerificationReport };
  }

  it('finds nothing wrong with the demo site, custom domain and all, and says so on the container', async () => {
    await call.management('POST', `/server-containers/${id}/custom-domains`, {
      domain: 'tags.shop.localhost',
    });
    const { status, body, report } = await eventually(
      async () => {
        const answer = await verify();
        expect(faulty(answer.report)).toEqual([]);
        return answer;
      },
      { timeoutMs: 60_000 },
    );
    expect(status).toBe(200);
    expect(report).toMatchObject({ status: 'passed' });
    expect(body.container).toMatchObject({ id, status: 'verified', statusReason: null });
    expect(report.checks.filter(({ status }) => status === 'skipped')).toEqual([]);
    expect(find(report, 'cookie_lifetime', 'shop.localhost')).toMatchObject({
      detail: 'full (by tags.shop.localhost)',
    });
  });
});
