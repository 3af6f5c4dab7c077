import { expect, test } from 'vitest';
import { containerSpecs } from '../../../sites/manifest/containers.ts';
import { formatManifest, parseManifest } from '../../../sites/manifest/load.ts';
import { memoryBytes } from '../../../sites/manifest/resources/memory.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { loadedManifest, manifestInput } from '../../support/manifest.ts';

const plain = formatManifest(manifestInput());
const parsed = (processing: string) =>
  parseManifest(`${plain}resources:\n  processing: ${processing}\n`, 'acme-shop.yaml');
const problemsOf = (processing: string) => {
  const result = parsed(processing);
  return result.ok ? [] : result.problems.map(({ path, message }) => `${path} ${message}`);
};

test('replicas are a number, or a range whose min is at most its max', () => {
  for (const valid of [
    '{ replicas: 16 }',
    '{ replicas: { min: 1, max: 16 } }',
    '{ replicas: { min: 2, max: 2 } }',
  ]) {
    expect(problemsOf(valid)).toEqual([]);
  }
  const path = 'resources.processing.replicas';
  for (const wrong of [
    '0',
    '17',
    '1.5',
    '{ min: 1, max: 17 }',
    '{ min: 1, max: 2, a: 1 }',
    'many',
    '{ min: 2 }',
  ]) {
    const problems = problemsOf(`{ replicas: ${wrong} }`);
    expect(problems.length, wrong).toBe(1);
    expect(problems[0], wrong).toContain(path);
  }
  expect(problemsOf('{ replicas: many }')).toEqual([
    `${path} must be a number from 1 to 16, or { min, max } of such numbers`,
  ]);
  expect(problemsOf('{ replicas: { min: 3, max: 2 } }')).toEqual([`${path} min must be at most max`]);
});

test('what a pod requests is at most its limit, also if the limit is the default', () => {
  expect(problemsOf('{ requests: { memory: 512m, cpus: 1 } }')).toEqual([]);
  expect(problemsOf('{ memory: 1g, requests: { memory: 1024m } }')).toEqual([]);
  expect(problemsOf('{ cpus: 0.5, requests: { memory: 1g, cpus: 0.6 } }')).toEqual([
    'resources.processing.requests.memory must be at most the limit, 512m',
    'resources.processing.requests.cpus must be at most the limit, 0.5',
  ]);
});

test('a manifest without resources is written without them, and one with a range and requests is read back', () => {
  expect(loadedManifest().resources.processing).toEqual({ memory: '512m', cpus: 1, replicas: 1 });
  expect(plain).not.toContain('resources');
  const resources = { processing: { replicas: { min: 2, max: 4 }, requests: { cpus: 0.2 } } };
  const text = formatManifest(manifestInput('acme-shop', 0, { resources }));
  const again = parseManifest(text, 'acme-shop.yaml');
  expect(again).toMatchObject({ ok: true, manifest: { resources } });
});

test('a host with Docker runs the minimum of a range, and a pod’s requests change no container there', () => {
  const specs = (processing: object) => {
    const manifest = loadedManifest('acme', 0, { resources: { processing } });
    return containerSpecs(manifest, { slots: new Slots('127.77'), originPort: 443 });
  };
  expect(specs({ replicas: { min: 3, max: 5 } })).toEqual(specs({ replicas: 3 }));
  expect(specs({ requests: { cpus: 0.2 } })).toEqual(specs({}));
});

test('m is MiB and g is GiB', () => {
  expect([memoryBytes('512m'), memoryBytes('1g')]).toEqual([536_870_912, 1_073_741_824]);
});
