import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readClusterConfig } from '../../../../gitops/kubernetes/client/config.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('the configuration of the client', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const write = async (name: string, content: unknown) => {
    const path = join(folder, name);
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
    return path;
  };
  const nothing = () => ({ env: {}, account: join(folder, 'none'), home: join(folder, 'none') });
  const config = (user: object, more: object = {}) => ({
    clusters: [{ name: 'c', cluster: { server: 'https://api.test:6443', ...more } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
  const read = async (user: object, more?: object) =>
    await readClusterConfig({ kubeconfig: await write('one', config(user, more)) }, nothing());

  test('is the account of the pod where there is one', async () => {
    await write('token', 'first\n');
    await write('ca.crt', 'PEM');
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const found = await readClusterConfig({}, { env, account: folder, home: folder });
    expect(found.proxy).toBeNull();
    expect(found.server.href).toBe('https://[fd00::1]/');
    expect(await found.credentials()).toEqual({
      tls: { ca: 'PEM' },
      headers: { authorization: 'Bearer first' },
    });
    await write('token', 'second\n');
    expect((await found.credentials()).headers).toEqual({ authorization: 'Bearer second' });
  });

  test('has the certificates and tokens of a file, with paths relative to it', async () => {
    await write('ca', 'CA');
    const trust = {
      'certificate-authority': 'ca',
      'tls-server-name': 'name.test',
      'proxy-url': 'http://proxy.test:1',
    };
    const pair = { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') };
    const found = await read(pair, trust);
    expect(found.proxy).toBe('http://proxy.test:1');
    expect(await found.credentials()).toEqual({
      tls: { ca: 'CA', cert: 'CERT', key: 'KEY', servername: 'name.test' },
      headers: {},
    });
    await write('file-token', 'T\n');
    const token = await read(
      { tokenFile: 'file-token', as: 'another' },
      { 'insecure-skip-tls-verify': true },
    );
    expect(await token.credentials()).toEqual({
      tls: { rejectUnauthorized: false },
      headers: { authorization: 'Bearer T', 'impersonate-user': 'another' },
    });
    const basic = await read({ username: 'a', password: 'b' });
    expect((await basic.credentials()).headers).toEqual({ authorization: `Basic ${base64('a:b')}` });
  });

  test('runs a program again only after its credentials are forgotten', async () => {
    const credential = (token: string) => ({ kind: 'ExecCredential', status: { token } });
    const script = join(folder, 'plugin');
    await writeFile(script, '#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" > "$0.info"\ncat "$0.answer"\n', {
      mode: 0o700,
    });
    await write('plugin.answer', credential('one'));
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './plugin' };
    const found = await read({ exec });
    const token = async () => (await found.credentials()).headers.authorization;
    expect(await token()).toBe('Bearer one');
    await write('plugin.answer', credential('two'));
    expect(await token()).toBe('Bearer one');
    found.forget();
    expect(await token()).toBe('Bearer two');
    const { apiVersion } = exec;
    expect(JSON.parse(await readFile(`${script}.info`, 'utf8'))).toMatchObject({ apiVersion });
    await rm(script);
    found.forget();
    await expect(token()).rejects.toMatchObject({
      reason: 'unauthorized',
      message: expect.stringMatching(/^Kubernetes: no credentials: spawn .*\/plugin ENOENT$/),
    });
  });

  test('takes what several files name from the first one that names it', async () => {
    const [first, second] = [
      config({ token: 'first' }),
      config({ token: 'second' }, { server: 'https://b.test' }),
    ];
    const other = {
      ...second,
      contexts: [{ name: 'y', context: { cluster: 'c', user: 'v' } }],
      users: [{ name: 'v', user: { token: 'v' } }],
    };
    const kubeconfig = `${await write('1', first)}:${await write('2', other)}`;
    const found = await readClusterConfig({ kubeconfig, context: 'y' }, nothing());
    expect(found.server.href).toBe('https://api.test:6443/');
    expect((await found.credentials()).headers).toEqual({ authorization: 'Bearer v' });
  });

  test.each<[string, RegExp, () => Promise<unknown>]>([
    [
      'a process with no configuration',
      /this process is not in a pod with a service account, and there is no .*config\. See KUBECONFIG/,
      () => readClusterConfig({}, nothing()),
    ],
    ['no such file', /ENOENT/, () => readClusterConfig({ kubeconfig: join(folder, 'gone') }, nothing())],
    [
      'a file that is no kubeconfig',
      /is not a kubeconfig/,
      async () => readClusterConfig({ kubeconfig: await write('bad', 'text') }, nothing()),
    ],
    [
      'no such context',
      /it has no context z/,
      async () => readClusterConfig({ kubeconfig: await write('one', config({})), context: 'z' }, nothing()),
    ],
    ...[{ 'as-groups': ['writers'] }, { 'as-uid': '7' }, { 'as-user-extra': {} }].map(
      (more) =>
        [
          `a user with ${Object.keys(more)}`,
          new RegExp(`its user u has ${Object.keys(more)}, which isn't supported: use `),
          () => read({ as: 'a', ...more }),
        ] as [string, RegExp, () => Promise<unknown>],
    ),
    ['no URL', /none is not the URL of a server/, () => read({}, { server: 'none' })],
  ])('says what to do about %s', async (_, message, attempt) => {
    await expect(attempt()).rejects.toMatchObject({
      name: 'TerminalError',
      message: expect.stringMatching(message),
    });
  });
});
