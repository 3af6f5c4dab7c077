import adblockItpDetection from './adblock_itp_detection/index.ts';
import anonymizer from './anonymizer/index.ts';
import blockAddresses from './block_addresses/index.ts';
import botGuard from './bot_guard/index.ts';
import consentGate from './consent_gate/index.ts';
import type { Plugin } from './contract.ts';
import cookieRestoration from './cookie_restoration/index.ts';
import customLoader from './custom_loader/index.ts';
import geoHeaders from './geo_headers/index.ts';
import googleTagGateway from './google_tag_gateway/index.ts';
import multiDomain from './multi_domain/index.ts';
import serverProxy from './server_proxy/index.ts';
import userAgentHeaders from './user_agent_headers/index.ts';
import userId from './user_id/index.ts';

/** The order of the hooks: `before` and `boot` run down the list, `after` runs up. */
export const PLUGINS: readonly Plugin[] = [
  googleTagGateway,
  serverProxy,
  customLoader,
  adblockItpDetection,
  cookieRestoration,
  multiDomain,
  geoHeaders,
  userAgentHeaders,
  botGuard,
  blockAddresses,
  consentGate,
  userId,
  anonymizer,
];
