import { describe, expect, test } from 'vitest';
import { GivenUpError, RetryableError, TerminalError } from '../../../../base/errors.ts';
import { Failures } from '../../../../gitops/appliers/containers/failures.ts';
import { containerSpecs } from '../../../../sites/manifest/containers.ts';
import { Secret } from '../../../../sites/manifest/secrets.ts';
import { Slots } from '../../../../sites/manifest/slots.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { loadedManifest } from '../../../support/manifest.ts';
import { privateEntries } from '../../../support/private-entries.ts';
import { containerSecret } from '../../../support/tag-server.ts';

const AUTH = 's3cret-auth';
const manifest = { ...loadedManifest(), config: containerSecret({ auth: AUTH }) };
const [spec] = containerSpecs(manifest, { slots: new Slots('127.77'), originPort: 443 });
if (spec === undefined) throw new Error('the site has no containers');
const failure = (lines: readonly string[] = []) => ({
  name: 'server',
  spec,
  what: 'it died (exit code 1)',
  lines,
});

const clock = fakeClock();
/** Failures on a host where another container has just started. */
function failuresOf(giveUpAfter: number): Failures {
  const failures = new Failures(giveUpAfter, clock);
  failures.started('another');
  return failures;
}

describe('the fault of a failed start', () => {
  const REFUSED = ['Request to https://www.googletagmanager.com/server.js?id=x failed with status 403'];
  const NO_DNS = ['getaddrinfo EAI_AGAIN www.googletagmanager.com'];

  test('is the host’s if no other container could start recently, and then nothing is given up', () => {
    const failures = new Failures(2, clock);
    failures.started('server');
    const faults = Array.from({ length: 5 }, () => failures.count('a', failure(NO_DNS)));
    expect(faults.map(({ isOfSite }) => isOfSite)).toEqual(Array(5).fill(false));
    expect(faults.some((error) => error instanceof GivenUpError)).toBe(false);
    expect(faults[4]).toBeInstanceOf(TerminalError);
  });

  test('is the site’s if another container has started in the last two minutes', () => {
    const failures = failuresOf(2);
    clock.advance(119_000);
    expect(failures.count('a', failure(NO_DNS)).isOfSite).toBe(true);
    clock.advance(2_000);
    expect(failures.count('a', failure(NO_DNS)).isOfSite).toBe(false);
  });

  test('is the site’s where Google refuses its CONTAINER_CONFIG, on any host', () => {
    const failures = new Failures(2, clock);
    const [first, , third] = [1, 2, 3].map(() => failures.count('a', failure(REFUSED)));
    expect(first?.isOfSite).toBe(true);
    expect(third).toBeInstanceOf(GivenUpError);
  });
});

test('what is known of specs that no site uses any more is forgotten, and so are starts of two minutes ago', () => {
  const failures = new Failures(2, clock);
  for (const hash of ['a', 'b', 'c']) failures.count(hash, failure());
  failures.prove('c');
  failures.prove('d');
  failures.retain(new Set(['b', 'd']));
  expect(privateEntries(failures)).toEqual({ '#counts': 1, '#proven': 1 });
  failures.retain(new Set());
  failures.started('one');
  clock.advance(121_000);
  failures.started('two');
  expect(privateEntries(failures)).toEqual({ '#started': 1 });
});

describe('a container that fails to start', () => {
  test.each([
    ['was never healthy', [], [RetryableError, RetryableError, TerminalError, TerminalError, GivenUpError]],
    ['was healthy', ['a'], [RetryableError, RetryableError, TerminalError, TerminalError, TerminalError]],
    [
      'is beside one that was healthy',
      ['b'],
      [RetryableError, RetryableError, TerminalError, TerminalError, GivenUpError],
    ],
  ])('causes the expected error at each failure in a row if it %s', (_name, proven, expected) => {
    const failures = failuresOf(5);
    for (const hash of proven) failures.prove(hash);
    const errors = expected.map(() => failures.count('a', failure()));
    expect(errors.map((error) => error.constructor)).toEqual(expected);
    expect(errors[4]?.message).toContain('5 times in a row');
  });

  test('is counted from zero again after it was healthy', () => {
    const failures = failuresOf(5);
    for (let time = 0; time < 4; time += 1) failures.count('a', failure());
    failures.prove('a');
    expect(failures.count('a', failure())).toBeInstanceOf(RetryableError);
  });

  test('shows its last five lines without secrets, each up to 300 characters', () => {
    const lines = ['first', ...['2', '3', '4', '5'], `auth=${AUTH} ${'x'.repeat(400)}`];
    const { message } = failuresOf(5).count('a', failure(lines));
    expect(message).toMatch(
      /^server doesn’t start: it died \(exit code 1\); it wrote: 2 \| 3 \| 4 \| 5 \| auth=\[secret\] x+$/,
    );
    expect(message.length).toBeLessThan(400);
  });

  test('is given up even if its output can’t be redacted, which then isn’t shown', () => {
    const serviceAccountKey = new Secret(`no JSON ${AUTH}`);
    const broken = { ...failure([`auth=${AUTH}`]), spec: { ...spec, serviceAccountKey } };
    const failures = failuresOf(3);
    const [, , error] = [1, 2, 3].map(() => failures.count('a', broken));
    expect(error).toBeInstanceOf(GivenUpError);
    expect(error?.message).toContain('its output isn’t shown, because its secrets can’t be removed');
    expect(error?.message).not.toContain(AUTH);
  });

  test('reports that it wrote nothing', () => {
    expect(failuresOf(5).count('a', failure()).message).toContain('it wrote nothing');
  });

  test.each([
    ['https://www.googletagmanager.com/server.js?id=x failed with status 403', 'status 403'],
    ['GET https://www.googletagmanager.com/server.js: 404', 'status 404'],
  ])('gives the remedy for a CONTAINER_CONFIG that Google refuses: %s', (line, status) => {
    const { message } = failuresOf(5).count('a', failure(['other', line]));
    expect(message).toContain(`Google refuses its CONTAINER_CONFIG (${status})`);
  });

  test.each([
    'Failed to decode the container config.',
    'Error: Missing or invalid container config parameter: auth',
    'Missing container config. Please provide the CONTAINER_CONFIG environment variable',
  ])('gives the remedy for a CONTAINER_CONFIG that the image can’t read: %s', (line) => {
    const { message } = failuresOf(5).count('a', failure([line, 'at main']));
    expect(message).toContain('its CONTAINER_CONFIG can’t be read: copy the one that Tag Manager shows now');
  });
});
