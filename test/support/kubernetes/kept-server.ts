import { join } from 'node:path';
import type { Cluster } from './cluster.ts';
import { writeProgramImage } from './image.ts';

/** The script for each connection: reads requests with their bodies, and answers with the configuration. */
const CONNECTION = `
b=/bin/busybox
read -r config < /tmp/config
end=$(printf '\\r')
while read -r request; do
  length=0
  age=
  while read -r header && [ "$header" != "$end" ]; do
    case "$header" in
      [Cc]ontent-[Ll]ength:*) length=\${header#*: }; length=\${length%?};;
      [Xx]-[Ss]gtm-[Hh]ealthz:*) age=any;;
    esac
  done
  [ "$length" -eq 0 ] || $b head -c "$length" > /dev/null
  status='200 OK'
  if [ -e /tmp/old ]; then
    case "$request" in "GET /healthz "*) [ $age ] && echo >> /tmp/old || status='503 Service Unavailable';; esac
  fi
  connection=keep-alive
  [ ! -e /tmp/ending ] || connection=close
  printf 'HTTP/1.1 %s\\r\\nContent-Length: %s\\r\\nConnection: %s\\r\\n\\r\\n%s' "$status" \${#config} $connection "$config"
  [ $connection = keep-alive ] || exit
done
`;

/** After SIGTERM, it still answers for some seconds, and closes each connection after the answer. */
const SERVER = `
b=/bin/busybox
$b base64 -d > /tmp/config << CONFIG
$CONTAINER_CONFIG
CONFIG
echo >> /tmp/config
$b nc -ll -p $PORT -e $b sh -c "$1" &
trap '$b touch /tmp/ending; $b sleep 4; exit 0' TERM
wait
`;

export const KEPT_SERVER = 'kept-server.test/kept-server:1';

/**
 * Imports a tag server into every node: it keeps connections, reads bodies, and answers like that of `importTagServer`;
 * while there is a file `/tmp/old`, its health check answers 503, unless the request names a limit of the age: then it
 * adds a line to that file. Returns the image's id.
 */
export async function importKeptServer(cluster: Cluster): Promise<string> {
  const file = join(cluster.folder, 'kept-server.tar');
  const id = await writeProgramImage(file, {
    name: KEPT_SERVER,
    program: '/bin/busybox',
    entrypoint: ['/bin/busybox', 'sh', '-c', SERVER, 'server', CONNECTION],
  });
  await cluster.importImages(file);
  return id;
}
