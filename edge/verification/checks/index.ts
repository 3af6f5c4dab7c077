import type { SiteCheck } from '../check.ts';
import type { CheckName } from '../contract.ts';
import { checkBlockLists } from './block-lists.ts';
import { checkClientAddress } from './client-address.ts';
import { checkConsent } from './consent.ts';
import { checkCookieLifetime } from './cookie-lifetime.ts';
import { checkCorsAllowed, checkCorsRefused } from './cors.ts';
import { checkEdgeRoutes } from './edge-routes.ts';
import { checkCookiesForwarded, checkQueryForwarded, checkUnderscorePaths } from './forwarding.ts';
import { checkHostReport } from './host-report.ts';
import { checkDns, checkServedCertificate } from './names.ts';
import { checkPolicy } from './policy.ts';
import { checkPathPrefix, checkPreviewUrl, checkSinglePreview } from './preview.ts';
import { checkSameOrigin } from './same-origin.ts';
import { checkContainerConfig, checkPreviewHealth, checkProcessingHealth } from './servers.ts';
import { checkBoot, checkLoader, checkScript } from './tags.ts';

/** The function of each check, by name. */
export const SITE_CHECKS: Readonly<Record<CheckName, SiteCheck>> = {
  host_report: checkHostReport,
  container_config: checkContainerConfig,
  edge_routes: checkEdgeRoutes,
  processing_health: checkProcessingHealth,
  preview_health: checkPreviewHealth,
  preview_url: checkPreviewUrl,
  single_preview: checkSinglePreview,
  path_prefix: checkPathPrefix,
  underscore_paths: checkUnderscorePaths,
  query_forwarded: checkQueryForwarded,
  cookies_forwarded: checkCookiesForwarded,
  loader: checkLoader,
  boot: checkBoot,
  script: checkScript,
  cors_allowed: checkCorsAllowed,
  cors_refused: checkCorsRefused,
  dns: checkDns,
  certificate: checkServedCertificate,
  client_address: checkClientAddress,
  cookie_lifetime: checkCookieLifetime,
  consent: checkConsent,
  block_lists: checkBlockLists,
  same_origin: checkSameOrigin,
  csp: checkPolicy,
};
