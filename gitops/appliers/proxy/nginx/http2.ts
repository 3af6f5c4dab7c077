import { runCommand } from '../../../clients/command.ts';

/**
 * How nginx is told to speak HTTP/2: by a parameter of `listen` before 1.25.1, later by a directive. `none`: it was built
 * without HTTP/2.
 */
export const HTTP2_SPELLINGS = ['parameter', 'directive', 'none'] as const;
export type Http2 = (typeof HTTP2_SPELLINGS)[number];

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
