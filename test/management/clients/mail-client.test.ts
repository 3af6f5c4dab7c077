import { expect, test } from 'vitest';
import { MailClient } from '../../../management/clients/mail-client.ts';

test('a password with a bare % is accepted', () => {
  const settings = { url: 'smtp://tagyard:100%@mail.example', from: 'tagyard@example.net' };
  expect(() => new MailClient(settings)).not.toThrow();
});
