import { expect, test } from 'vitest';
import { Operations } from '../../../gitops/loop/operations.ts';

test('leaves a finished operation finished, whatever is reported of it afterwards', () => {
  const operations = new Operations([], () => undefined);
  const { id } = operations.create('shop', 'deprovision', 'a1');
  operations.finish([id], 'succeeded');
  operations.step([id], { target: 'dns', key: 'x', op: 'delete', status: 'running', ms: 0 });
  expect(operations.get(id)).toMatchObject({ status: 'succeeded', steps: [] });
});
