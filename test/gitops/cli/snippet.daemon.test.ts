import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tagyardHere } from '../../support/cli/in-process.ts';
import { creation, World } from '../../support/management/world.ts';

let world: World;
let env: Record<string, string>;
let sameOrigin: { path: string; forwarderToken: string; snippets: Record<string, string> };
beforeAll(async () => {
  world = await World.open();
  const client = await world.client();
  const created = async (name: string, domains: string[]) => {
    const webTagIds = Object.fromEntries(domains.map((domain) => [domain, 'GTM-ABC1234']));
    const body = creation(client, '', { name, domains, webTagIds });
    return (await world.call('POST', '/server-containers', { as: 'owner', body })).body;
  };
  const set = async (id: string, domain: string) => {
    const body = { domain, sameOrigin: {} };
    return (await world.call('POST', `/server-containers/${id}/domains`, { as: 'owner', body })).body;
  };
  const { id } = await created('One', ['one.example', 'plain.example']);
  ({ sameOrigin } = (await set(id, 'one.example')).domains[0]);
  const two = await created('Two', ['two-a.example', 'two-b.example']);
  for (const domain of ['two-a.example', 'two-b.example']) await set(two.id, domain);
  await created('None', ['none.example']);
  env = { MANAGEMENT_URL: await world.listen(), TAGYARD_TOKEN: await world.issuer.token('owner') };
});
afterAll(() => world.close());

const tagyard = (args: readonly string[], extra: Record<string, string> = {}) =>
  tagyardHere('http://127.0.0.1:1', args, { ...env, ...extra });

describe('tagyard snippet', () => {
  test('with --for prints the configuration and nothing else', async () => {
    const { exitCode, stdout } = await tagyard(['snippet', 'one', '--for', 'nginx']);
    expect([exitCode, stdout]).toEqual([0, sameOrigin.snippets.nginx?.trimEnd()]);
    expect(
      (await tagyard(['snippet', 'two', '--for', 'caddy', '--domain', 'two-b.example'])).stdout,
    ).toContain('Tagyard for two-b.example');
  });

  test('prints what the pages need, and each product’s configuration', async () => {
    const { stdout } = await tagyard(['snippet', 'one']);
    expect(stdout).toContain('<script>');
    const prefix = `https://one.example${sameOrigin.path}/ https://*.one.example${sameOrigin.path}/`;
    expect(stdout).toMatch(
      /--- one\.example: if the pages have a content security policy, add to it\nscript-src /,
    );
    for (const directive of ['script-src', 'connect-src', 'img-src', 'frame-src']) {
      expect(stdout).toContain(`${directive} ${prefix} `);
    }
    for (const text of Object.values(sameOrigin.snippets)) expect(stdout).toContain(text.trimEnd());
    const { domains } = JSON.parse((await tagyard(['snippet', 'one', '--json'])).stdout);
    // The second domain has no path: its pages load from the edge hostname.
    const [, edgeUrl = ''] = /"(https?:\/\/[^"]+)\/l\//.exec(domains[1].snippet) ?? [];
    expect(domains[1].contentSecurityPolicy).toMatch(/^script-src /);
    expect(domains[1].contentSecurityPolicy.startsWith(`script-src ${edgeUrl} https://`)).toBe(true);
    expect(domains.map((one: { sameOrigin: unknown }) => one.sameOrigin)).toEqual([sameOrigin, null]);
  });

  test.each([
    ['an unknown site', ['nowhere'], {}, 'there is no site nowhere'],
    ['an unknown domain', ['one', '--domain', 'x.example'], {}, 'one has no domain x.example'],
    ['several domains', ['two', '--for', 'nginx'], {}, 'one of two-a.example, two-b.example'],
    ['no path', ['none', '--for', 'nginx'], {}, 'none has no domain with a same-origin path'],
    [
      'no path of the chosen domain',
      ['one', '--for', 'nginx', '--domain', 'plain.example'],
      {},
      'plain.example has no same-origin path',
    ],
    ['no token', ['one'], { TAGYARD_TOKEN: '' }, 'set TAGYARD_TOKEN'],
  ])('says what to do: %s', async (_what, args, extra, message) => {
    const { exitCode, stderr, stdout } = await tagyard(['snippet', ...args], extra);
    expect([exitCode, stdout]).toEqual([1, '']);
    expect(stderr).toContain(message);
  });

  test('shows a viewer no token', async () => {
    const viewer = { TAGYARD_TOKEN: await world.issuer.token('viewer') };
    const { stderr } = await tagyard(['snippet', 'one', '--for', 'nginx'], viewer);
    expect(stderr).toContain('use the API token of an owner, admin or editor');
    expect((await tagyard(['snippet', 'one'], viewer)).stdout).not.toContain('ft_');
  });
});
