import { describe, expect, test } from 'vitest';
import { lookupWith, parseTarget } from '../../../sites/local/egress-target.ts';

describe('a request target', () => {
  test.each([
    ['https://shop.example/a/../b?q=%20', 'https:', 'shop.example', 443, 'shop.example', '/a/../b?q=%20'],
    ['http://shop.example', 'http:', 'shop.example', 80, 'shop.example', '/'],
    ['HTTP://Shop.Example:8080?q', 'http:', 'shop.example', 8080, 'Shop.Example:8080', '/?q'],
    ['https://[2001:db8::1]:8443/x', 'https:', '2001:db8::1', 8443, '[2001:db8::1]:8443', '/x'],
  ])('%s is split without changes to its path', (url, protocol, hostname, port, authority, path) => {
    expect(parseTarget(url)).toEqual({ protocol, hostname, port, authority, path });
  });

  test.each([
    '',
    '/relative',
    'ftp://shop.example/',
    'https://',
    'https://shop.example/#x',
    'https://user:secret@shop.example/',
    '*',
  ])('"%s" is refused', (url) => {
    expect(parseTarget(url)).toBeNull();
  });
});

describe('the lookup of the egress proxy', () => {
  const find = async (host: string, all: boolean) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const lookup = lookupWith((name) =>
      name === 'six.example' ? '::1' : name === 'four.example' ? '192.0.2.1' : null,
    );
    lookup(host, { all }, (error, address, family) =>
      error === null ? resolve(all ? address : [address, family]) : reject(error),
    );
    return await promise;
  };

  test.each([
    ['four.example', '192.0.2.1', 4],
    ['six.example', '::1', 6],
    ['shop.localhost', '127.0.0.1', 4],
  ])('resolves %s to %s', async (host, address, family) => {
    expect(await find(host, false)).toEqual([address, family]);
    expect(await find(host, true)).toEqual([{ address, family }]);
  });
});
