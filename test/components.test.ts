import { describe, expect, test } from 'vitest';
import { allRequired, COMPONENTS, missing } from './support/components.ts';

describe('the real components of this machine', () => {
  test.for(COMPONENTS)('%s can be used', (component, { skip }) => {
    const reason = missing(component);
    if (reason !== null && !allRequired()) skip(reason);
    expect(reason).toBeNull();
  });
});
