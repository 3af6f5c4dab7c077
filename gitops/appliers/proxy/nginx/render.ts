import Handlebars from 'handlebars';
import { contentHash } from '../../../../base/ownership.ts';
import { TOLD_HEADERS } from '../../../../edge/http/request-headers.ts';
import { type VhostOptions, vhostOptions } from '../../../../sites/manifest/schema.ts';
import type { CertificatePaths } from '../certificates.ts';
import {
  followOptions,
  type PerOption,
  type ProxySpec,
  proxySpecSchema,
  servedName,
  type Vhost,
} from '../desired.ts';
import {
  ARRIVAL_PATH,
  BODY_LIMIT_OCTETS,
  CLAIMS,
  droppedHeaders,
  HOP_SECRET_HEADERS,
  type TrustedPeers,
} from '../policy.ts';
import { DIRECT_HEADERS, PREVIEW_HEADERS } from './direct-headers.ts';
import {
  certificatePaths,
  databasePath,
  type MainSettings,
  plain,
  platformNames,
  scriptParts,
  trustedPeers,
  versionText,
} from './quote.ts';
import type { Templates } from './templates.ts';

/** nginx's variable of a request header. */
const variableOf = (header: string) => `http_${header.replaceAll('-', '_')}`;
/** If a request lacks the hop secret, only these of its headers reach the container; by kind of vhost. */
const DIRECT = { origin: DIRECT_HEADERS, preview: [...DIRECT_HEADERS, ...PREVIEW_HEADERS] } as const;

/**
 * For each option, nginx's directive in the locations that forward requests: on a host and in the gateway of a cluster.
 * Nothing is escaped, so an option's value must be one word of nginx's language.
 */
const DIRECTIVES: PerOption<string> = {
  maxBodyMb: (most) => `client_max_body_size ${most}m;`,
};

export interface Renderer {
  /** Hash of everything that a site's file depends on besides its vhosts and certificates. */
  readonly form: string;
  /** `nginx.conf` of our own nginx; with the system's nginx, it is used only to test a tree before nginx reads it. */
  readonly skeleton: string;
  /** `http/tagyard.conf`, with the hop secret. `geoDatabase` needs the module in the settings; `null`: no place is known. */
  main(trusted: TrustedPeers, geoDatabase?: string | null): string;
  /** `http/version.conf`: the endpoint that returns the version that the workers serve. */
  version(version: string): string;
  /** `certificates`: one entry for each vhost, in order; `null`: no TLS yet. Throws `TerminalError` as `plain` does. */
  vhosts(spec: ProxySpec, certificates: readonly (CertificatePaths | null)[]): string;
  /** One server for all names that lead to pods and have this certificate and these options. Only for a gateway. */
  platform(names: readonly string[], certificate: CertificatePaths, options?: VhostOptions): string;
}

/** Renders the templates. Handlebars escapes nothing here, so every value is checked by `plain` first. */
export function nginxRenderer(templates: Templates, settings: MainSettings): Renderer {
  const handlebars = Handlebars.create();
  handlebars.registerPartial('challenge', templates.challenge);
  handlebars.registerPartial('place', templates.place);
  handlebars.registerPartial('treatment', templates.treatment);
  handlebars.registerPartial('forward', templates.forward);
  const compile = (template: string) => handlebars.compile(template, { noEscape: true, strict: true });
  const skeleton = compile(templates.nginx)(settings);
  const http = compile(templates.http);
  const version = compile(templates.version);
  const containers = compile(templates.containers);
  const custom = compile(templates.custom);
  const policy = compile(templates.policy);
  const platform = compile(templates.platform);
  const { listen, httpPort, tlsPort } = settings;
  const [hopHeader, oldHopHeader] = HOP_SECRET_HEADERS;
  const edge = `${settings.edge.address}:${settings.edge.port}`;
  const verify = settings.edge.scheme === 'https';
  const { gateway } = settings;
  const frontRanges = gateway?.frontRanges ?? null;
  const accept = frontRanges === null ? '' : ' proxy_protocol';
  const http2 = {
    listen: settings.http2 === 'parameter' ? ' http2' : '',
    on: settings.http2 === 'directive',
  };
  const socket = { listen, httpPort, tlsPort, accept, http2 };
  const system = settings.systemLogs !== null;
  const { limits, ca } = settings;
  const treatment = {
    system,
    logs: settings.systemLogs ?? 'logs',
    limits,
    maxBody: BODY_LIMIT_OCTETS,
    verify,
    ca,
    told: TOLD_HEADERS.map((header) => ({ header, variable: header.replaceAll('-', '_') })),
  };

  function vhost(site: string, vhost: Vhost, paths: CertificatePaths | null): string {
    const acme = servedName(vhost).tls === 'acme';
    const common = { ...socket, ...treatment, ...vhost, acme, cert: null, ...paths, site };
    if (vhost.kind === 'policy') {
      const own = gateway === null ? {} : { tlsPort: gateway.policyPort, accept: '' };
      return policy({ ...common, ...own, ...scriptParts(vhost.script) });
    }
    const options = followOptions(DIRECTIVES, vhost.options);
    if (vhost.kind !== 'custom') {
      const name = `tagyard_${vhost.tls === 'inside' ? 'inside' : vhost.kind}_${site}`;
      const arrival = vhost.kind === 'origin' ? ARRIVAL_PATH : null;
      const direct = DIRECT[vhost.kind].map((header) => ({ name: header, variable: variableOf(header) }));
      const dropped = droppedHeaders(vhost.kind);
      const to = { name, target: name, ownName: vhost.host, gateway: null };
      return containers({ ...common, ...to, direct, arrival, dropped, options });
    }
    return custom({
      ...common,
      name: `tagyard_custom_${site}_${vhost.host}`,
      edge,
      // The template sets the hop header instead.
      dropped: droppedHeaders(vhost.kind).filter((name) => name !== hopHeader),
      hopHeader,
      edgeScheme: settings.edge.scheme,
      options,
    });
  }

  return {
    form: contentHash([
      [templates.containers, templates.custom, templates.policy, templates.challenge, templates.place],
      [templates.forward, templates.platform, gateway],
      [socket, settings.edge, DIRECT, Object.entries(DIRECTIVES).map(String)],
      TOLD_HEADERS,
      (['origin', 'preview', 'custom'] as const).map(droppedHeaders),
      system ? [templates.treatment, treatment] : null,
    ]),
    skeleton,
    main: (trusted, geoDatabase = null) =>
      http({
        ...settings,
        ...treatment,
        // A new skeleton makes a new tree, even if no other file has changed.
        skeletonHash: contentHash(skeleton),
        accept,
        frontRanges,
        hopSecrets: [settings.hopSecret, settings.previousHopSecret].filter((one) => one !== null),
        claims: Object.fromEntries(
          Object.entries(CLAIMS[gateway === null ? 'host' : 'gateway']).map(([what, header]) => [
            what,
            variableOf(header),
          ]),
        ),
        limitKey: gateway === null ? 'server_name' : 'host',
        hopVariable: variableOf(hopHeader),
        oldHopVariable: variableOf(oldHopHeader),
        trusted: plain(trustedPeers, trusted, 'the trusted peers'),
        geoDatabase: plain(databasePath, geoDatabase, 'the path of the database of places'),
      }),
    version: (text) =>
      version({ version: plain(versionText, text, 'the version'), statusPort: settings.statusPort }),
    vhosts(spec, certificates) {
      const { site, vhosts } = plain(proxySpecSchema, spec, 'the vhosts');
      return vhosts
        .map((item, index) => vhost(site, item, plain(certificatePaths, certificates[index], item.host)))
        .join('');
    },
    platform(names, certificate, options) {
      const paths = plain(certificatePaths, certificate, 'the certificate');
      // Only a preview server gets this header: for an origin, the variable is empty.
      const forwarded = { name: 'forwarded', variable: 'tagyard_forwarded' };
      const direct = DIRECT_HEADERS.map((header) => ({ name: header, variable: variableOf(header) }));
      const to = { target: '$tagyard_pods', ownName: '$host', gateway };
      return platform({
        ...{ ...socket, ...treatment, ...paths, ...to, arrival: ARRIVAL_PATH },
        names: plain(platformNames, names, 'the names'),
        direct: [...direct, forwarded],
        options: followOptions(DIRECTIVES, plain(vhostOptions.optional(), options, 'the options')),
        dropped: droppedHeaders('origin').filter((name) => name !== 'forwarded'),
      });
    },
  };
}
