/** A customer's server for one host: TLS, its own pages from another server, and a forwarder's snippet. */
interface Site {
  readonly directory: string;
  readonly host: string;
  readonly port: number;
  /** Certificate and key in one PEM file. */
  readonly pem: string;
  /** The port of the pages' own server on 127.0.0.1. */
  readonly pages: number;
  readonly snippet: string;
}

interface Configuration {
  readonly files: Readonly<Record<string, string>>;
  readonly argv: readonly string[];
}

const SERVERS = ['nginx', 'apache', 'caddy', 'haproxy'] as const;
export type Server = (typeof SERVERS)[number];

/** Modules of Debian's apache2: those that the snippet asks for, and those that the server itself needs. */
const MODULES = ['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'ssl', 'headers', 'http2', 'cache'];

/** A minimal configuration of each server, with the snippet at the place that its comment names. */
export const CONFIGURATIONS: Readonly<Record<Server, (site: Site) => Configuration>> = {
  nginx: ({ directory, host, port, pem, pages, snippet }) => ({
    argv: ['nginx', '-e', 'stderr', '-p', directory, '-c', `${directory}/nginx.conf`],
    files: {
      'nginx.conf': `daemon off;
user root;
pid ${directory}/nginx.pid;
error_log stderr;
worker_processes 1;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${directory}/${kind};`).join('\n  ')}
  # A shop may set this for its own pages; the forwarder must not send it to the edge.
  proxy_set_header X-Shop "secret";
  server {
    listen 127.0.0.1:${port} ssl http2;
    server_name ${host};
    ssl_certificate ${pem};
    ssl_certificate_key ${pem};
    location ~ \\.js$ { expires 1y; return 200 "the shop’s own script"; }
    location / { proxy_pass http://127.0.0.1:${pages}; proxy_set_header Host $host; }
${snippet}
  }
}
`,
    },
  }),
  apache: ({ directory, host, port, pem, pages, snippet }) => ({
    argv: ['apache2', '-d', directory, '-f', `${directory}/apache2.conf`, '-DFOREGROUND'],
    files: {
      'apache2.conf': `${MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so\n`).join('')}ServerName ${host}
PidFile ${directory}/apache2.pid
DefaultRuntimeDir ${directory}
User www-data
Group www-data
ErrorLog "|/bin/cat"
Listen 127.0.0.1:${port}
<VirtualHost 127.0.0.1:${port}>
  ServerName ${host}
  Protocols h2 http/1.1
  SSLEngine on
  SSLCertificateFile ${pem}
  SSLCertificateKeyFile ${pem}
  ProxyPreserveHost On
  ProxyPass / http://127.0.0.1:${pages}/
${snippet}
</VirtualHost>
`,
    },
  }),
  caddy: ({ directory, host, port, pem, pages, snippet }) => ({
    argv: ['caddy', 'run', '--config', `${directory}/Caddyfile`, '--adapter', 'caddyfile'],
    files: {
      Caddyfile: `{
  admin off
  auto_https off
  storage file_system ${directory}
}
https://${host}:${port} {
  bind 127.0.0.1
  tls ${pem} ${pem}
  reverse_proxy http://127.0.0.1:${pages}
${snippet}
}
`,
    },
  }),
  haproxy: ({ directory, port, pem, pages, snippet }) => ({
    argv: ['haproxy', '-db', '-f', `${directory}/haproxy.cfg`],
    files: {
      'haproxy.cfg': `global
  maxconn 200
  stats socket ${directory}/haproxy.sock
defaults
  mode http
  option forwardfor
  timeout connect 5s
  timeout client 60s
  timeout server 60s
backend pages
  server pages 127.0.0.1:${pages}
frontend www
  bind 127.0.0.1:${port} ssl crt ${pem} alpn h2,http/1.1
  default_backend pages
${snippet}
`,
    },
  }),
};
