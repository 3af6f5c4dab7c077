import { describe, expect, test } from 'vitest';
import { allRequired, COMPONENTS, componentsOf, missing } from './support/components.ts';

describe('the real components of this machine', () => {
  test.for(COMPONENTS)('%s can be used', (component, { skip }) => {
    const reason = missing(component);
    if (reason !== null && !allRequired()) skip(reason);
    expect(reason).toBeNull();
  });
});

describe('the components that a test file needs', () => {
  test.each<[source: string, needed: readonly string[]]>([
    ["describe('a suite', () => {});", []],
    ["describeWith('nginx', 'a suite', body);", ['nginx']],
    ["describeWith(\n  ['nginx', 'docker'],\n  'a suite', body);", ['nginx', 'docker']],
    ["describeWith('knot', 'a'); describeWith('pebble', 'b');", ['knot', 'pebble']],
    ["testWith('chromium', 'a case', body);", ['chromium']],
    ["const cases = missing('reference') === null ? read() : [];", ['reference']],
    ["describeWith(['docker', 'root'], 'a suite', body);", ['docker', 'root']],
    ["describeWith('nginx', 'chromium is not named by it', body);", ['nginx']],
    ['test.for(COMPONENTS)', COMPONENTS],
  ])('are found in %j', (source, needed) => {
    expect([...componentsOf(source)].sort()).toEqual([...needed].sort());
  });
});
