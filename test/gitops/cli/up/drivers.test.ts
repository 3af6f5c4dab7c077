import { describe, expect, test } from 'vitest';
import { chooseDrivers, type Machine } from '../../../../gitops/cli/up/drivers.ts';

const NGINX = { bin: '/usr/sbin/nginx', version: 'nginx/1.28.0' };
const machine = (nginx: boolean, docker: boolean, firewall = true): Machine => ({
  findNginx: async () => (nginx ? NGINX : null),
  isDockerUsable: async () => (docker ? { ok: true } : { ok: false, reason: 'no engine answers' }),
  mayWriteFirewall: async () => firewall,
});

const FULL = machine(true, true);
const BARE = machine(false, false);

describe('chooseDrivers', () => {
  test.each([
    ['takes what is installed', {}, FULL, 'nginx', 'docker'],
    ['takes what is built in if nginx and Docker are missing', {}, BARE, 'embedded', 'process'],
    ['takes nginx if only Docker is missing', {}, machine(true, false), 'nginx', 'process'],
    ['takes Docker if only nginx is missing', {}, machine(false, true), 'embedded', 'docker'],
    ['takes the requested proxy', { TAGYARD_PROXY: 'embedded' }, FULL, 'embedded', 'docker'],
    ['takes the requested containers', { TAGYARD_CONTAINERS: 'process' }, FULL, 'nginx', 'process'],
    [
      'takes requested ones that are installed',
      { TAGYARD_PROXY: 'nginx', TAGYARD_CONTAINERS: 'docker' },
      FULL,
      'nginx',
      'docker',
    ],
    [
      'takes an empty variable as unset',
      { TAGYARD_PROXY: '', TAGYARD_CONTAINERS: '' },
      FULL,
      'nginx',
      'docker',
    ],
  ])('%s', async (_what, env, on, proxy, containers) => {
    const drivers = await chooseDrivers(env, on);
    expect([drivers.proxy.name, drivers.containers.name]).toEqual([proxy, containers]);
  });

  test.each([
    ['TAGYARD_PROXY=nginx, but nginx is not installed', { TAGYARD_PROXY: 'nginx' }],
    ['TAGYARD_CONTAINERS=docker, but no engine answers', { TAGYARD_CONTAINERS: 'docker' }],
    ['TAGYARD_PROXY=caddy is unknown; set it to one of nginx, embedded', { TAGYARD_PROXY: 'caddy' }],
    [
      'TAGYARD_CONTAINERS=podman is unknown; set it to one of docker, process',
      { TAGYARD_CONTAINERS: 'podman' },
    ],
  ])('refuses: %s', async (message, env) => {
    await expect(chooseDrivers(env, BARE)).rejects.toThrow(message);
  });

  test.each([
    ['the firewall', FULL, 'firewall', /the internet and their preview server only/],
    [
      'without root, networks',
      machine(true, true, false),
      'networks',
      /reach this machine and private addresses/,
    ],
    ['without Docker, nothing', BARE, 'none', /child processes reach each other/],
  ])('says what isolates the containers: %s', async (_what, on, name, reason) => {
    expect((await chooseDrivers({}, on)).isolation).toEqual({ name, reason: expect.stringMatching(reason) });
  });

  test('isolates by networks alone with CONTAINER_FIREWALL=off, never with CONTAINER_FIREWALL=enforce', async () => {
    const { isolation } = await chooseDrivers({ CONTAINER_FIREWALL: 'off' }, FULL);
    expect(isolation).toEqual({ name: 'networks', reason: expect.stringContaining('CONTAINER_FIREWALL') });
    const enforced = await chooseDrivers({ CONTAINER_FIREWALL: 'enforce' }, FULL);
    expect(enforced.isolation.name).toBe('firewall');
    await expect(
      chooseDrivers({ CONTAINER_FIREWALL: 'enforce' }, machine(true, true, false)),
    ).rejects.toThrow('CONTAINER_FIREWALL=enforce, but iptables can’t be used');
    await expect(chooseDrivers({ CONTAINER_FIREWALL: 'enforce' }, BARE)).rejects.toThrow(
      'CONTAINER_FIREWALL=enforce, but child processes can’t be isolated',
    );
  });

  test('gives each choice a reason, and nginx its path', async () => {
    const { proxy, containers } = await chooseDrivers({}, machine(true, false));
    expect(proxy).toEqual({
      name: 'nginx',
      bin: NGINX.bin,
      reason: expect.stringContaining('nginx/1.28.0'),
    });
    expect(containers.reason).toContain('no engine answers');
  });

  test.each([
    [{ DATABASE_URL: 'postgres://db' }, 'postgresql'],
    [{ DATABASE_URL: '' }, 'pglite'],
    [{}, 'pglite'],
  ])('with %j the database is %s', async (env, name) => {
    expect((await chooseDrivers(env, BARE)).database.name).toBe(name);
  });
});
