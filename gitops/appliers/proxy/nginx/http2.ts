import { runCommand } from '../../../clients/command.ts';
import type { MainSettings } from './quote.ts';

type Http2 = MainSettings['http2'];

export async function http2Of(bin: string): Promise<Http2> {
  const { stderr } = await runCommand(bin, ['-V']);
  return readHttp2(stderr);
}

/** Reads the output of `nginx -V`. */
export function readHttp2(build: string): Http2 {
  if (!build.includes('--with-http_v2_module')) return 'none';
  const [major = 0, minor = 0, patch = 0] =
    /nginx\/(\d+)\.(\d+)\.(\d+)/.exec(build)?.slice(1).map(Number) ?? [];
  const isLater = major > 1 || (major === 1 && (minor > 25 || (minor === 25 && patch >= 1)));
  return isLater ? 'directive' : 'parameter';
}
